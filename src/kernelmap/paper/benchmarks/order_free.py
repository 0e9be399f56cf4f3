"""The order-free NAO: time per context and per training step, against NAO and against the bare products it needs."""

from collections.abc import Callable
from time import process_time
from typing import Any

import torch
from torch import Tensor

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.progress import progress
from kernelmap.maps import MAPS
from kernelmap.maps.nao.set_nao import OtherPairsLoss
from kernelmap.paper.benchmarks.processes import in_process, peak_memory_gb, serve, shortest

BATCH, TARGETS = 9, 20
"""Contexts of a training step, and the pairs that order-free maps predict of each."""
OPTIONS: dict[str, dict[str, Any]] = {
    "set-nao": {"basis": "sines"},
    "integral-posterior": {"basis": "sines"},
    "nao": {"dk": 40},
}


def bench_order_free(repeats: int) -> dict[str, Any]:
    """On n x n nodes with d pairs, one thread whose time is counted: growth in N = n² at d = 50, and in d at n = 21."""
    sizes = [(21, 50), (41, 50), (61, 50), (21, 20), (21, 100), (21, 200)]
    cases = [(1, name, n, d) for n, d in sizes for name in OPTIONS if name == "set-nao" or (n <= 41 and d <= 100)]
    return {"cases": [in_process(__name__, *case, repeats) for case in progress(cases, "Benchmark")]}


def measure(name: str, n: int, d: int, repeats: int) -> dict[str, Any]:
    torch.manual_seed(0)
    kind = torch.float64 if name == "integral-posterior" else torch.float32
    grid = grids.rectangle(n)
    U, F = (torch.randn(BATCH, n * n, d, dtype=kind) for _ in range(2))
    batch = Context(U, F, grid, grid)
    model = MAPS[name].build(ContextShape.of(batch), MAPS[name].Options(**OPTIONS[name])).to(kind)
    assert model.Loss is not None
    loss = model.Loss(model, grid, grid)

    def step() -> None:
        model.zero_grad()
        targets = (batch, U[..., :TARGETS], F[..., :TARGETS])
        (loss.error(*targets) if isinstance(loss, OtherPairsLoss) else loss(U, F, 0)).sum().backward()

    with torch.no_grad():
        one = shortest(lambda: model(batch[0]), repeats, process_time)
    bare = shortest(products(U[0], F[0], n), repeats, process_time)
    return {
        "map": name,
        "N": n * n,
        "d": d,
        "context_ms": 1e3 * one,
        "times_products": one / bare,
        "step_ms": 1e3 * shortest(step, repeats, process_time),
        "peak_memory_gb": peak_memory_gb(),
    }


def products(U: Tensor, F: Tensor, n: int) -> Callable[[], Tensor]:
    """What a context needs at least: the Gram matrix UᵀU, its inverse, and the kernel applied to d inputs."""
    identity = torch.eye(U.shape[-1], dtype=U.dtype)

    def run() -> Tensor:
        S = U.mT @ U
        return F @ (torch.linalg.inv(S + n * n * identity) @ (U.mT @ U))

    return run


if __name__ == "__main__":
    serve(measure)
