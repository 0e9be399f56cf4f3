"""Hyperelastic specimens from bitmaps: -div P(I + ∇u) = f on the unit square, u = 0 on its boundary."""

from kernelmap.problems.mechanics.data import MechanicsData, mechanics
from kernelmap.problems.mechanics.forces import ForceField
from kernelmap.problems.mechanics.generation import generate
from kernelmap.problems.mechanics.images import Specimens, Split, bitmaps, mnist, read_bitmaps
from kernelmap.problems.mechanics.plan import Plan
from kernelmap.problems.mechanics.problem import Mechanics
from kernelmap.problems.mechanics.specimen import respond

__all__ = [
    "ForceField",
    "Mechanics",
    "MechanicsData",
    "Plan",
    "Specimens",
    "Split",
    "bitmaps",
    "generate",
    "mechanics",
    "mnist",
    "read_bitmaps",
    "respond",
]
