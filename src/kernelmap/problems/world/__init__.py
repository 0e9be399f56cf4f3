"""A simulated world of kernels of one coordinate: what the prior of `kernel1d` is learned on, and means."""

from kernelmap.problems.world.kernels import random_kernel
from kernelmap.problems.world.problem import World
from kernelmap.problems.world.systems import WorldSystem, draw_system

__all__ = ["World", "WorldSystem", "draw_system", "random_kernel"]
