"""Speed, as two ways of doing the same thing in one run; and errors on systems unlike those of training."""

from kernelmap.paper.benchmarks.attention import bench_attention
from kernelmap.paper.benchmarks.darcy import bench_darcy
from kernelmap.paper.benchmarks.discover import bench_discover
from kernelmap.paper.benchmarks.mechanics import bench_mechanics
from kernelmap.paper.benchmarks.order_free import bench_order_free

BENCHMARKS = {
    "attention": bench_attention,
    "darcy": bench_darcy,
    "discover": bench_discover,
    "mechanics": bench_mechanics,
    "order-free": bench_order_free,
}

__all__ = ["BENCHMARKS"]
