"""Darcy flow on the unit square: -div(b grad p) = g, p = 0 on the boundary, b of two phases."""

from kernelmap.problems.darcy.data import DarcyData, Task, darcy
from kernelmap.problems.darcy.fields import PERMEABILITIES, Spectrum, gaussian_fields, microstructures, sources
from kernelmap.problems.darcy.problem import Darcy
from kernelmap.problems.darcy.scheme import FaceMean, green_kernel, interior, pressures, stiffness, stiffness_kernel

__all__ = [
    "PERMEABILITIES",
    "Darcy",
    "DarcyData",
    "FaceMean",
    "Spectrum",
    "Task",
    "darcy",
    "gaussian_fields",
    "green_kernel",
    "interior",
    "microstructures",
    "pressures",
    "sources",
    "stiffness",
    "stiffness_kernel",
]
