"""Autoencoder: an MLP straight from the context to the kernel."""

from dataclasses import dataclass

import torch.nn.functional as nnf
from torch import nn

from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel
from kernelmap.maps.base import KernelMap
from kernelmap.maps.registry import register


@dataclass(frozen=True)
class AutoencoderOptions:
    """Size of an autoencoder.

    Attributes:
        dk: scales the width of its layers.
    """

    dk: int = 10

    def __post_init__(self) -> None:
        if self.dk < 1:
            raise InputError(f"dk must be at least 1, got {self.dk}.")


@register("autoencoder")
class Autoencoder(KernelMap):
    """K(x, y) = MLP[u_1(y)..u_d(y), f_1(x)..f_d(x)], token by token.

    The first layer is a sum of a part from y and a part from x, each evaluated once per point.
    """

    Options = AutoencoderOptions

    def __init__(self, shape: ContextShape, options: AutoencoderOptions) -> None:
        super().__init__(shape, options)
        width = round(2.6 * options.dk)
        self.from_u = nn.Linear(shape.d, width)
        self.from_f = nn.Linear(shape.d, width, bias=False)
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def kernel(self, context: Context) -> Kernel:
        u = self.from_u((context.U - self.u_mean) / self.u_std)
        f = self.from_f((context.F - self.f_mean) / self.f_std)
        first = nnf.leaky_relu(u[..., None, :, :] + f[..., :, None, :])
        values = self.out(nnf.leaky_relu(self.hidden(first)))[..., 0]
        return Kernel(values * self.unit, context.y, context.x)
