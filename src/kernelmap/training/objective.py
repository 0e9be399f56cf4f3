"""What is minimised. By default, the operator error on the context's own pairs."""

from abc import abstractmethod
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from kernelmap.context import Context
from kernelmap.grids import Grid
from kernelmap.maps import KernelMap
from kernelmap.metrics import operator_error


class Objective(nn.Module):
    """(U, F) -> the loss of every context. The true kernels play no part.

    Attributes:
        targets: pairs of a draw beyond the context's own, to be predicted.
        variants: seeds that a validation averages over.
    """

    targets: ClassVar[int] = 0
    variants: ClassVar[int] = 1

    def __init__(self, model: KernelMap, y: Grid, x: Grid) -> None:
        super().__init__()
        self.model, self.y, self.x = model, y, x

    @classmethod
    def pairs(cls, d: int) -> int:
        """Pairs a draw needs for contexts of up to d."""
        return d + cls.targets

    @abstractmethod
    def forward(self, U: Float[Tensor, "*bu N D"], F: Float[Tensor, "*bf M D"], seed: int) -> Float[Tensor, "*bf"]: ...


class ContextObjective(Objective):
    """||K_hat U - F|| / ||F|| of every context."""

    def forward(self, U: Float[Tensor, "*bu N d"], F: Float[Tensor, "*bf M d"], seed: int) -> Float[Tensor, "*bf"]:
        with parametrize.cached():
            kernel = self.model(Context._trusted(U, F, self.y, self.x))
        return operator_error(kernel.apply(U), F, self.x)
