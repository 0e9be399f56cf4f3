"""`Domain`: where a map was trained, so that it takes any grid of that place and refuses others."""

from dataclasses import dataclass
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid

MARGIN = 0.05


@dataclass(frozen=True)
class Domain:
    """A box [low, high] and the number of field components on it.

    A single point has no extent; `point_weight` is then the quadrature weight its token gets in attention sums.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    components: int = 1
    point_weight: float | None = None

    @classmethod
    def of(cls, grid: Grid, point_weight: float) -> "Domain":
        low, high = (tuple(bound.tolist()) for bound in (grid.points.amin(dim=0), grid.points.amax(dim=0)))
        return cls(low, high, grid.components, point_weight if grid.is_point else None)

    @property
    def is_point(self) -> bool:
        return self.point_weight is not None

    @property
    def jacobian(self) -> float:
        """dz/dy of the change to coordinates z in [-1, 1]."""
        return prod(2 / (high - low) for low, high in zip(self.low, self.high, strict=True))

    def coordinates(self, grid: Grid) -> Float[Tensor, "n dim"]:
        """Points mapped to [-1, 1] in every direction; a single point to 0."""
        if self.is_point:
            return torch.zeros_like(grid.points)
        low, high = (grid.points.new_tensor(bound) for bound in (self.low, self.high))
        return 2 * (grid.points - low) / (high - low) - 1

    def token_weights(self, grid: Grid) -> Float[Tensor, " size"]:
        """Quadrature weights in the coordinates z."""
        if self.point_weight is not None:
            return torch.full_like(grid.value_weights, self.point_weight)
        return grid.value_weights * self.jacobian

    def check(self, grid: Grid, name: str) -> None:
        """A grid of tokens: a point where training had a point, and many where it had many."""
        self._check(grid, name, grid.is_point == self.is_point)

    def check_places(self, grid: Grid, name: str) -> None:
        """Points at which a kernel is wanted: any number of them."""
        self._check(grid, name, True)

    def _check(self, grid: Grid, name: str, as_many: bool) -> None:
        if grid.components != self.components or grid.dim != len(self.low) or not as_many:
            raise InputError(
                f"the model takes {_describe(self.components, len(self.low), self.is_point)} on the grid {name}, "
                f"got {_describe(grid.components, grid.dim, grid.is_point)}. `kernelmap models` names others."
            )
        if not self.is_point and not (self.coordinates(grid).abs() <= 1 + MARGIN).all():
            low, high = grid.points.amin(dim=0).tolist(), grid.points.amax(dim=0).tolist()
            raise InputError(
                f"the grid {name} runs from {low} to {high}, outside {list(self.low)} to {list(self.high)}, where the "
                "model was trained. Check its units, cut it, or train a model for this range."
            )


def _describe(components: int, dim: int, is_point: bool) -> str:
    return f"{components} component(s) " + ("at one point" if is_point else f"on points in {dim} dimension(s)")


@dataclass(frozen=True)
class ContextShape:
    """What a map must know of its contexts when it is built."""

    d: int
    N: int
    M: int
    y: Domain
    x: Domain

    @classmethod
    def of(cls, context: Context) -> "ContextShape":
        y = Domain.of(context.y, 1.0)
        point_weight = float(y.token_weights(context.y).mean())
        return cls(context.d, context.y.size, context.x.size, y, Domain.of(context.x, point_weight))

    @classmethod
    def from_json(cls, values: dict) -> "ContextShape":
        y, x = (
            Domain(tuple(box["low"]), tuple(box["high"]), box["components"], box["point_weight"])
            for box in (values["y"], values["x"])
        )
        return cls(values["d"], values["N"], values["M"], y, x)
