"""What a discovered kernel on a plane mesh shows of the material: how strongly each point interacts, and two phases."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.kernel import Kernel
from kernelmap.core.mesh import Lattice

RTOL = 1e-6
"""Strengths that agree better are equal."""


@dataclass(frozen=True)
class Microstructure:
    """A two-phase map of the points of a mesh.

    `strength` is Σ_k |K(x, y_k)| w_k, `stiff` where it is above `threshold`, `probability` that of being above it, and
    `known` the points that the map is about: at the mesh's boundary ring the pairs do not determine the kernel.
    `log_odds` are those of two phases against a smooth medium.
    """

    strength: Float[Tensor, " M"]
    threshold: float
    stiff: Bool[Tensor, " M"]
    probability: Float[Tensor, " M"]
    known: Bool[Tensor, " M"]
    log_odds: float

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
    log_odds = log_odds_of_phases(strength, stiff, known, Lattice.of(kernel.x, kernel.x))
    if std is None:
        return Microstructure(strength, threshold, stiff, stiff.to(strength), known, log_odds)
    spread = (std * weights).square().sum(dim=-1).sqrt().clamp(min=torch.finfo(strength.dtype).tiny)
    probability = torch.special.ndtr((strength - threshold) / spread)
    return Microstructure(strength, threshold, stiff, probability, known, log_odds)


def log_odds_of_phases(
    strength: Float[Tensor, " M"], stiff: Bool[Tensor, " M"], known: Bool[Tensor, " M"], lattice: Lattice
) -> float:
    """log p(strengths | two phases) / p(strengths | smooth), each given the neighbours of a node (Besag), by BIC.

    Two phases: the phase has a probability for every number of stiff neighbours, and the strength is linear in the
    phase and in the fraction of stiff neighbours, because the bonds between phases are means. Smooth: the strength is
    linear in the mean of the neighbours' strengths.
    """
    places, exists = lattice.neighbours(1)
    beside = [1, 3, 5, 7]
    places = places[:, beside]
    around = (exists[:, beside] & known[places]).to(strength)
    count = around.sum(dim=1).clamp(min=1)
    neighbours, fraction = ((values[places] * around).sum(dim=1) / count for values in (strength, stiff.to(strength)))
    v, label, fraction, neighbours = strength[known], stiff[known].to(strength), fraction[known], neighbours[known]
    numbers = (4 * fraction).round()
    phases = sum(_label_deviance(label[numbers == number], len(v)) for number in numbers.unique())
    return (_deviance(v, [neighbours]) - _deviance(v, [label, fraction]) - phases) / 2


def _deviance(v: Float[Tensor, " n"], features: list[Float[Tensor, " n"]]) -> float:
    """-2 log likelihood of a linear regression, but for a constant, with log n for every parameter."""
    X = torch.stack([torch.ones_like(v), *features], dim=1)
    residual = v - X @ (torch.linalg.pinv(X) @ v)
    variance = residual.square().mean().clamp(min=RTOL**2 * v.square().mean())
    return len(v) * float(variance.log()) + (X.shape[1] + 1) * math.log(len(v))


def _label_deviance(labels: Float[Tensor, " some"], n: int) -> float:
    """-2 log likelihood of zeros and ones with the probability that suits them best, with log n for it."""
    p = labels.mean()
    return 2 * len(labels) * float(torch.special.entr(torch.stack([p, 1 - p])).sum()) + math.log(n)


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
    """Share of Σ |K| beyond so many mesh steps, between interior points: a local kernel has none.

    All of it where x and y are no points of one space, or too few have a distance.
    """
    inside, within = interior(kernel.x), interior(kernel.y)
    if kernel.x.dim != kernel.y.dim or inside.sum() < 2 or not within.any():
        return 1.0
    points = kernel.x.points[inside]
    step = float(torch.cdist(points, points).fill_diagonal_(float("inf")).amin())
    values = kernel.values[inside][:, within].abs()
    far = torch.cdist(points, kernel.y.points[within]) > (steps + 1e-6) * step
    return float(values[far.to(values.device)].sum() / values.sum())
