"""Points and quadrature weights, in float64.

A `Grid` carries the points on which a field is sampled. Vector fields stack their components: a field with
c components on n points has c n values, component by component.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.core.errors import InputError


@dataclass(frozen=True)
class Grid:
    """n points in R^dim with quadrature weights: ∫ v ≈ Σ_k weights[k] v(points[k])."""

    points: Float[Tensor, "n dim"]
    weights: Float[Tensor, " n"]
    components: int = 1

    def __post_init__(self) -> None:
        if self.points.ndim != 2 or self.weights.shape != self.points.shape[:1] or not len(self.points):
            raise InputError(
                f"a grid needs points (n, dim) and weights (n), got {tuple(self.points.shape)} and "
                f"{tuple(self.weights.shape)}."
            )
        if not torch.isfinite(self.points).all() or not ((self.weights > 0) & torch.isfinite(self.weights)).all():
            raise InputError("grid points must be finite, and quadrature weights finite and positive.")

    @property
    def size(self) -> int:
        """Number of values of a field on this grid: points times components."""
        return self.points.shape[0] * self.components

    @property
    def dim(self) -> int:
        return self.points.shape[1]

    @property
    def is_point(self) -> bool:
        return self.points.shape[0] == 1

    @property
    def value_weights(self) -> Float[Tensor, " size"]:
        """The quadrature weight of every value, component by component."""
        return self.weights if self.components == 1 else self.weights.repeat(self.components)

    @cached_property
    def cells(self) -> Float[Tensor, "2 n"]:
        """Widths h of the cells that end at the points of a grid in one dimension with trapezoidal weights, and 1 / h.

        The first begins as far before its point as its weight says: dx for `radii`, 0 for `from_points`. Of a cell
        without width both are zero.
        """
        if self.dim != 1 or self.is_point:
            raise InputError(f"cells are those of a grid of several points in one dimension, got {self.points.shape}.")
        with torch.inference_mode(False):
            steps = self.points[:, 0].diff()
            first = 2 * self.weights[:1] - steps[:1]
            h = torch.cat([first.where(first > 0.01 * steps[:1], 0), steps])
            return torch.stack([h, torch.where(h > 0, 1 / h, 0)])

    def with_components(self, components: int) -> "Grid":
        return replace(self, components=components)

    def has_points_of(self, other: "Grid") -> bool:
        return self.points is other.points or torch.equal(self.points, other.points)

    def resembles(self, other: "Grid") -> bool:
        """The same points, to rounding."""
        rounding = 1e-8 * float(self.points.abs().max())
        return self.points.shape == other.points.shape and torch.allclose(self.points, other.points, atol=rounding)

    def equals(self, other: "Grid") -> bool:
        """The same points, weights and components, on the same device."""
        return (
            self.components == other.components
            and (self.points.device, self.points.dtype) == (other.points.device, other.points.dtype)
            and torch.equal(self.points, other.points)
            and torch.equal(self.weights, other.weights)
        )

    def clone(self) -> "Grid":
        """In memory of its own."""
        return replace(self, points=self.points.clone(), weights=self.weights.clone())

    def sample(self, chosen: Int[Tensor, " m"]) -> "Grid":
        """Some of the points, with weights that keep integrals the same on average over random choices."""
        scale = len(self.points) / len(chosen)
        return replace(self, points=self.points[chosen], weights=self.weights[chosen] * scale)

    def to(self, device: torch.device | str) -> "Grid":
        return replace(self, points=self.points.to(device), weights=self.weights.to(device))


def point() -> Grid:
    """The grid of a scalar output: one point, weight one."""
    return Grid(torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))


def radii(dx: float, n: int) -> Grid:
    """r_k = k dx for k = 1..n with the Riemann weight dx (at r = 0 a radial token is zero)."""
    points = dx * torch.arange(1, n + 1, dtype=torch.float64)
    return Grid(points[:, None], torch.full((n,), dx, dtype=torch.float64))


def from_points(points: np.ndarray | Tensor | Sequence[float]) -> Grid:
    """A one-dimensional grid at given increasing points, with trapezoidal weights."""
    p = torch.as_tensor(points, dtype=torch.float64)
    if p.ndim != 1 or len(p) < 2:
        raise InputError(f"expected at least two points in one dimension, got an array of shape {tuple(p.shape)}.")
    if not torch.isfinite(p).all() or not (p.diff() > 0).all():
        raise InputError("grid points must be finite and strictly increasing; sort them and drop duplicates.")
    step = p.diff()
    weights = torch.zeros_like(p)
    weights[:-1] += step / 2
    weights[1:] += step / 2
    return Grid(p[:, None], weights)


def mesh(*axes: Float[Tensor, " _"]) -> Grid:
    """The nodes of a mesh with these uniform axes, last coordinate fastest, each with the weight of one cell."""
    axes = tuple(axis.to(torch.float64) for axis in axes)
    points = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).reshape(-1, len(axes))
    cell = prod(float(axis[-1] - axis[0]) / (len(axis) - 1) for axis in axes)
    return Grid(points, torch.full((len(points),), cell, dtype=torch.float64))


def rectangle(n: int, dim: int = 2, low: float = 0.0, high: float = 1.0) -> Grid:
    """n^dim nodes of a uniform mesh of [low, high]^dim, last coordinate fastest, each of weight h^dim."""
    return mesh(*[torch.linspace(low, high, n, dtype=torch.float64)] * dim)
