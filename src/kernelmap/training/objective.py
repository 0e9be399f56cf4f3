"""What is minimised: the operator error on the context's own pairs."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from kernelmap.context import Context
from kernelmap.grids import Grid
from kernelmap.maps import KernelMap
from kernelmap.metrics import operator_error


class ContextObjective(nn.Module):
    """(U, F) -> ||K_hat U - F|| / ||F|| of every context. The true kernels play no part."""

    variants = 1

    def __init__(self, model: KernelMap, y: Grid, x: Grid) -> None:
        super().__init__()
        self.model, self.y, self.x = model, y, x

    @staticmethod
    def pairs(d: int) -> int:
        """Pairs a draw needs for contexts of d."""
        return d

    def forward(self, U: Float[Tensor, "*bu N d"], F: Float[Tensor, "*bf M d"], seed: int) -> Float[Tensor, "*bf"]:
        with parametrize.cached():
            kernel = self.model(Context._trusted(U, F, self.y, self.x))
        return operator_error(kernel.apply(U), F, self.x)
