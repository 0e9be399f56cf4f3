"""The interaction of particles: K depends on the distance of two of them."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.core import grids
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.places import Places
from kernelmap.operators.base import Operator
from kernelmap.operators.cubic import lagrange


@dataclass(frozen=True)
class Interaction(Operator):
    """v_i = 1/n Σ_j K(|x_j - x_i|) (x_j - x_i): a pair for every snapshot, particle i and component of v_i.

    K is cubic between its grid points r_k = k step, k = 0..count, and zero beyond: K(r) = Σ_k K(r_k) φ_k(r), and

        w_k U[k, i] = 1/n Σ_j φ_k(|x_j - x_i|) (x_j - x_i)
    """

    name: ClassVar[str] = "interaction"
    formula: ClassVar[str] = "v_i = 1/n Σ_j K(|x_j - x_i|) (x_j - x_i)"
    coordinate: ClassVar[str] = "r"
    axis: ClassVar[str] = "distance r"

    def __post_init__(self) -> None:
        if self.count < 3:
            raise InputError(f"K is cubic between its grid points, which takes 3 steps or more, got {self.count}.")

    @property
    def grid(self) -> Grid:
        return grids.from_points(self.step * torch.arange(self.count + 1, dtype=torch.float64))

    def tokens_at(
        self,
        positions: Float[np.ndarray, "s n dim"],
        snapshots: Int[np.ndarray, " d"],
        particles: Int[np.ndarray, " d"],
        components: Int[np.ndarray, " d"],
    ) -> Float[Tensor, "d N"]:
        """Of pair i, that component of the velocity of that particle in that snapshot."""
        n, dim = positions.shape[1:]
        wanted, back = np.unique(snapshots * n + particles, return_inverse=True)
        sums = np.array([self._sums(positions[i // n], i % n) for i in wanted.tolist()]).reshape(
            -1, dim, self.count + 1
        )
        return torch.from_numpy(sums[back, components]) / (n * self.grid.weights)

    def _sums(self, x: Float[np.ndarray, "n dim"], particle: int) -> Float[np.ndarray, "dim N"]:
        """Σ_j φ_k(|x_j - x_i|) (x_j - x_i)."""
        towards = x - x[particle]
        place = np.linalg.norm(towards, axis=1) / self.step
        towards, place = towards[place <= self.count], place[place <= self.count]
        low = np.clip(place.astype(np.int64), 1, self.count - 2)
        at, cubic = low[:, None] + np.arange(-1, 3), lagrange(place - low)
        return np.stack([np.bincount(at.ravel(), (cubic * z[:, None]).ravel(), self.count + 1) for z in towards.T])

    @classmethod
    def places(
        cls,
        times: Float[np.ndarray, " d"],
        particles: Int[np.ndarray, " d"],
        components: Int[np.ndarray, " d"],
        runs: Int[np.ndarray, " d"] | None = None,
        time: str = "t",
    ) -> Places:
        """When each pair was measured, of which particle, and which component; in which run where there are several."""
        columns, names = [particles, components, times], ("particle", "component", time)
        if runs is not None:
            columns, names = [runs, *columns], ("run", *names)
        return Places(torch.from_numpy(np.column_stack(columns).astype(np.float64)), names)
