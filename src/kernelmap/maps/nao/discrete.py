"""Discrete-NAO: NAO with plain matrices in place of functions of position."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.kernel import Kernel
from kernelmap.maps.nao.attention import Blocks
from kernelmap.maps.nao.functions import integral
from kernelmap.maps.nao.model import NAO
from kernelmap.maps.nao.options import Normaliser
from kernelmap.maps.registry import register


@register("discrete-nao")
class DiscreteNAO(NAO):
    """K = W [A_uu; A_fu] + c 1ᵀ with a matrix W and a vector c. It has no meaning on any other grid."""

    default_normaliser: ClassVar[Normaliser] = "tokens"
    tied_to_grid: ClassVar[bool] = True
    at_any_point: ClassVar[bool] = False

    def build_mixer(self) -> None:
        n = self.shape.N + self.shape.M
        self.matrix = nn.Parameter(torch.empty(self.options.heads, self.shape.M, n).uniform_(-(n**-0.5), n**-0.5))
        self.bias = nn.Parameter(torch.zeros(self.shape.M))

    @property
    def last_norm(self) -> bool:
        """The paper's counts in two dimensions, where LayerNorm is over the whole array, have a third one."""
        return self.normaliser == "array"

    def mixed(self, x: Grid, context: Context, h: list[Tensor], q: Blocks) -> Float[Tensor, "*#b H M dk"]:
        parts = self.matrix.split([len(part) for part in h], dim=-1)
        return integral(parts[0], q[0]) + integral(parts[1], q[1])

    def rows(self, x: Grid, context: Context, h: list[Tensor]) -> Float[Tensor, "H M n"]:
        return self.matrix

    def kernel_at(self, context: Context, x: Grid) -> Kernel:
        if not x.has_points_of(context.x):
            raise InputError("a Discrete-NAO has a kernel at the output points of its matrix only; use NAO.")
        kernel = super().kernel_at(context, x)
        constant = (self.unit * self.bias)[:, None]
        if kernel.left is None:
            return Kernel(kernel.right + constant, context.y, context.x)
        left = torch.cat([kernel.left, constant.expand(*kernel.left.shape[:-1], 1)], dim=-1)
        right = torch.cat([kernel.right, torch.ones_like(kernel.right[..., :1, :])], dim=-2)
        return Kernel(right, context.y, context.x, left)
