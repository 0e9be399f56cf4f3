"""`Operator`: a functional g that makes tokens of measured inputs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.grids import Grid
from kernelmap.core.places import Places


@dataclass(frozen=True)
class Operator(ABC):
    """f_j = ∫ K(y) g[u](y, j) dy ≈ Σ_k K(y_k) w_k U[k, j] with the tokens U[k, j] = g[u](y_k, j).

    step: of the kernel's grid; count: steps from zero to where the kernel ends.

    Class attributes:
        name: in the entry `operator` of a file and in `Context.operator`.
        formula: what it is, in messages.
        coordinate: the letter of y; axis: what y is, on the axis of a picture.
        unknown: what may be unknown besides K.
    """

    step: float
    count: int

    name: ClassVar[str]
    formula: ClassVar[str]
    coordinate: ClassVar[str]
    axis: ClassVar[str]
    unknown: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def grid(self) -> Grid:
        """The points y_k of the kernel with their quadrature weights."""

    @property
    def kind(self) -> str:
        """What contexts call it."""
        return self.name

    def context(
        self,
        tokens: Float[Tensor, "d N"],
        f: Float[Tensor, " d"],
        places: Places | None = None,
        f_std: Float[Tensor, " d"] | None = None,
        u_errors: Float[Tensor, "1 L"] | None = None,
    ) -> Context:
        """The pairs of these tokens and responses, as every map takes them."""
        F_std = None if f_std is None else f_std[None]
        U = tokens.T.contiguous()
        return Context(U, f[None], self.grid, grids.point(), places, F_std, operator=self.kind, u_errors=u_errors)
