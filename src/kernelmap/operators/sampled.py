"""`SampledOperator`: an operator on inputs u sampled in equal steps, in time or on a mesh."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kernelmap.core.grids import Grid
from kernelmap.core.places import Places
from kernelmap.operators.base import Operator

WINDOW_VALUES = 2**24
"""Of u, in all windows that are looked at together."""


@dataclass(frozen=True)
class SampledOperator(Operator):
    """Tokens of a sample x_j of u are made of a window of u around it: the same functional everywhere.

    step: also of the samples.

    Class attributes:
        place: the letter of x; repeated: what several rows of u are called in the name of a pair.
    """

    place: ClassVar[str]
    repeated: ClassVar[str]

    @property
    @abstractmethod
    def reach(self) -> tuple[int, int]:
        """How many samples of u before and after x_j its tokens are made of, along every axis."""

    @abstractmethod
    def tokens(self, windows: Float[Tensor, "n L"]) -> Float[Tensor, "n N"]:
        """Of windows of u that reach so far before and after a place, last axis fastest."""

    @classmethod
    def on(cls, y: Grid) -> "SampledOperator":
        """The operator that has this grid."""
        last, step = float(y.points[-1, 0]), float(y.points[1, 0] - y.points[0, 0])
        return cls(step, round(last / step))

    @property
    def wraps(self) -> bool:
        """Whether u goes on at the beginning where it ends."""
        return False

    def reached(self, *samples: int) -> Bool[np.ndarray, "*J"]:
        """The places around which u is known as far as it is needed."""
        before, after = (0, 0) if self.wraps else self.reach
        inside = np.zeros(samples, dtype=bool)
        inside[tuple(slice(before, max(J - after, 0)) for J in samples)] = True
        return inside

    def tokens_at(
        self, u: Float[np.ndarray, "n *J"], rows: Int[np.ndarray, " d"], points: Int[np.ndarray, " d"]
    ) -> Float[Tensor, "d N"]:
        """Of pair i, at the sample points[i], counted through all axes, of the input u[rows[i]].

        u is zero, or begins again, where it ends.
        """
        before, after = self.reach
        axes, shape = tuple(range(1, u.ndim)), u.shape[1:]
        padded = np.pad(u, ((0, 0), *[(before, after)] * len(axes)), mode="wrap" if self.wraps else "constant")
        windows = np.lib.stride_tricks.sliding_window_view(padded, [before + after + 1] * len(axes), axes)
        length = (before + after + 1) ** len(axes)
        at, together = np.stack([rows, *np.unravel_index(points, shape)]), max(WINDOW_VALUES // length, 1)
        parts = [
            self.tokens(torch.from_numpy(windows[tuple(at[:, first : first + together])].reshape(-1, length)))
            for first in range(0, len(rows), together)
        ]
        return torch.cat(parts) if parts else torch.empty(0, self.grid.size, dtype=torch.float64)

    @classmethod
    def places(
        cls, at: Float[np.ndarray, "d *k"], rows: Int[np.ndarray, " d"], several: bool, place: str = ""
    ) -> Places:
        """Where each pair was measured, and in which row of u where there are several; `place` is the letter of x."""
        place = place or cls.place
        names = (place,) if at.ndim == 1 else tuple(f"{place}{axis + 1}" for axis in range(at.shape[1]))
        if not several:
            return Places(torch.from_numpy(np.column_stack([at])), names)
        return Places(torch.from_numpy(np.column_stack([rows, at])), (cls.repeated, *names))
