"""What a discovered kernel on a plane mesh shows of the material: how strongly each point interacts, and two phases."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.kernel import Kernel


@dataclass(frozen=True)
class Microstructure:
    """A two-phase map of the points of a mesh.

    `strength` is Σ_k |K(x, y_k)| w_k, `stiff` where it is above `threshold`, `probability` that of being above it, and
    `known` the points that the map is about: at the mesh's boundary ring the pairs do not determine the kernel.
    """

    strength: Float[Tensor, " M"]
    threshold: float
    stiff: Bool[Tensor, " M"]
    probability: Float[Tensor, " M"]
    known: Bool[Tensor, " M"]

    def accuracy(self, truth: Bool[Tensor, " M"]) -> float:
        """Fraction of the known points whose phase is the true one."""
        return float((self.stiff == truth)[self.known].double().mean())


def microstructure(kernel: Kernel, std: Float[Tensor, "M N"] | None = None) -> Microstructure:
    """The phases of a discovered local kernel; the threshold is chosen from its own strengths, without the truth."""
    if kernel.x.dim != 2 or kernel.x.components != 1 or kernel.values.ndim != 2:
        raise InputError("a microstructure is read off the kernel of one system with one component on a plane mesh.")
    weights = kernel.y.value_weights.to(kernel.right)
    strength = (kernel.values.abs() * weights).sum(dim=-1)
    known = interior(kernel.x)
    threshold = otsu(strength[known])
    stiff = strength > threshold
    if std is None:
        return Microstructure(strength, threshold, stiff, stiff.to(strength), known)
    spread = (std * weights).square().sum(dim=-1).sqrt().clamp(min=torch.finfo(strength.dtype).tiny)
    probability = torch.special.ndtr((strength - threshold) / spread)
    return Microstructure(strength, threshold, stiff, probability, known)


def otsu(values: Float[Tensor, " n"]) -> float:
    """The threshold between two classes with the largest variance between their means (Otsu, 1979)."""
    ordered = values.sort().values
    if len(ordered) < 2 or not ordered[-1] > ordered[0]:
        raise InputError("all points interact equally strongly: two phases cannot be distinguished.")
    below = torch.arange(1, len(ordered)).to(ordered)
    sums = ordered.cumsum(dim=0)[:-1]
    above = len(ordered) - below
    between = below * above * (sums / below - (ordered.sum() - sums) / above).square()
    split = int(between.argmax())
    return float(ordered[split : split + 2].mean())


def interior(grid: Grid) -> Bool[Tensor, " n"]:
    """Points that do not lie on the box around the mesh."""
    low, high = grid.points.amin(dim=0), grid.points.amax(dim=0)
    margin = 1e-9 * (high - low)
    return ((grid.points > low + margin) & (grid.points < high - margin)).all(dim=1)


def far_mass(kernel: Kernel, steps: float = 2.0) -> float:
    """Share of Σ |K| beyond so many mesh steps, between interior points: a local kernel has none."""
    inside = interior(kernel.x)
    points = kernel.x.points[inside]
    step = float(torch.cdist(points, points).fill_diagonal_(float("inf")).amin())
    values = kernel.values[inside][:, interior(kernel.y)].abs()
    far = torch.cdist(points, kernel.y.points[interior(kernel.y)]) > (steps + 1e-6) * step
    return float(values[far.to(values.device)].sum() / values.sum())
