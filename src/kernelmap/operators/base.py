"""`Operator`: a functional g that makes tokens of an input u sampled in equal steps."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kernelmap.core.grids import Grid
from kernelmap.core.places import Places


@dataclass(frozen=True)
class Operator(ABC):
    """f(x_j) = ∫ K(y) g[u](y, x_j) dy ≈ Σ_k K(y_k) w_k U[k, j] with the tokens U[k, j] = g[u](y_k, x_j).

    step: of the samples of u; count: steps from zero to where the kernel ends.

    Class attributes:
        name: in the entry `operator` of a file and in `Context.operator`.
        coordinate: the letter of y; axis: what y is, on the axis of a picture.
        place: the letter of x; repeated: what several rows of u are called in the name of a pair.
        unknown: what may be unknown besides K.
        wraps: whether u goes on at the beginning where it ends.
    """

    step: float
    count: int

    name: ClassVar[str]
    coordinate: ClassVar[str]
    axis: ClassVar[str]
    place: ClassVar[str]
    repeated: ClassVar[str]
    unknown: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def grid(self) -> Grid:
        """The points y_k of the kernel with their quadrature weights."""

    @property
    @abstractmethod
    def reach(self) -> tuple[int, int]:
        """How many samples of u before and after x_j its tokens are made of."""

    @classmethod
    def on(cls, y: Grid) -> "Operator":
        """The operator that has this grid."""
        last, step = float(y.points[-1, 0]), float(y.points[1, 0] - y.points[0, 0])
        return cls(step, round(last / step))

    @abstractmethod
    def tokens(self, windows: Float[Tensor, "n L"]) -> Float[Tensor, "n N"]:
        """Of windows of u that reach so far before and after a place."""

    @property
    def wraps(self) -> bool:
        return False

    def reached(self, samples: int) -> Bool[np.ndarray, " J"]:
        """The places around which u is known as far as it is needed."""
        before, after = (0, 0) if self.wraps else self.reach
        inside = np.ones(samples, dtype=bool)
        inside[:before] = inside[max(samples - after, 0) :] = False
        return inside

    def tokens_at(
        self, u: Float[np.ndarray, "n J"], rows: Int[np.ndarray, " d"], points: Int[np.ndarray, " d"]
    ) -> Float[Tensor, "d N"]:
        """Of pair i, at the sample points[i] of the row rows[i] of u, which is zero, or begins again, where it ends."""
        before, after = self.reach
        padded = np.pad(u, ((0, 0), (before, after)), mode="wrap" if self.wraps else "constant")
        windows = torch.from_numpy(padded).unfold(-1, before + after + 1, 1)
        return self.tokens(windows[torch.from_numpy(rows), torch.from_numpy(points)])

    @classmethod
    def places(cls, at: Float[np.ndarray, " d"], rows: Int[np.ndarray, " d"], several: bool, place: str = "") -> Places:
        """Where each pair was measured, and in which row of u where there are several; `place` is the letter of x."""
        place = place or cls.place
        if not several:
            return Places(torch.from_numpy(at[:, None].copy()), (place,))
        return Places(torch.from_numpy(np.column_stack([rows, at])), (cls.repeated, place))
