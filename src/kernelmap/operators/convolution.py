"""The convolution of a time series: K is the response to an impulse."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core import grids
from kernelmap.core.grids import Grid
from kernelmap.operators.sampled import SampledOperator

Lags = Literal["causal", "two-sided", "periodic"]
LAGS: tuple[Lags, ...] = get_args(Lags)


@dataclass(frozen=True)
class Convolution(SampledOperator):
    """f(t) = ∫ K(s) u(t - s) ds, by the trapezoidal rule at the lags s_k = k step.

    causal: 0 <= s <= R, the memory. two-sided: -R <= s <= R. periodic: 0 <= s <= R, at most the period, and u goes on
    at its beginning where its record ends: t_0 follows one step after the last t.
    """

    lags: Lags = "causal"

    name: ClassVar[str] = "convolution"
    formula: ClassVar[str] = "f(t) = ∫ K(s) u(t-s) ds"
    coordinate: ClassVar[str] = "s"
    axis: ClassVar[str] = "lag s"
    place: ClassVar[str] = "t"
    repeated: ClassVar[str] = "run"
    unknown: ClassVar[tuple[str, ...]] = ("offset", "trend")

    @property
    def grid(self) -> Grid:
        first = -self.count if self.lags == "two-sided" else 0
        return grids.from_points(self.step * torch.arange(first, self.count + 1, dtype=torch.float64))

    @classmethod
    def on(cls, y: Grid) -> "Convolution":
        """Causal, or two-sided; those of a period have the grid of causal lags."""
        last, step = float(y.points[-1, 0]), float(y.points[1, 0] - y.points[0, 0])
        return cls(step, round(last / step), "two-sided" if y.points[0, 0] < 0 else "causal")

    @property
    def reach(self) -> tuple[int, int]:
        return self.count, self.count if self.lags == "two-sided" else 0

    @property
    def wraps(self) -> bool:
        return self.lags == "periodic"

    def tokens(self, windows: Float[Tensor, "n L"]) -> Float[Tensor, "n N"]:
        """u(t - s) is a window of u, read backwards."""
        return windows.flip(-1)
