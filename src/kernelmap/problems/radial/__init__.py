"""Nonlocal diffusion with a radial kernel: f(x) = ∫_0^δ K(r) [u(x+r) + u(x-r) - 2u(x)] dr."""

from kernelmap.problems.radial.data import RadialData, Setting, radial, radial_systems
from kernelmap.problems.radial.inputs import Inputs, Variant, locations, two_waves
from kernelmap.problems.radial.kernels import RadialKernel
from kernelmap.problems.radial.problem import Radial

__all__ = [
    "Inputs",
    "Radial",
    "RadialData",
    "RadialKernel",
    "Setting",
    "Variant",
    "locations",
    "radial",
    "radial_systems",
    "two_waves",
]
