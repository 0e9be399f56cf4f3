"""Training a kernel map over many systems, on pairs alone."""

from kernelmap.training.loop import Machine, train
from kernelmap.training.recipe import Recipe
from kernelmap.training.state import Progress

__all__ = ["Machine", "Progress", "Recipe", "train"]
