"""Autoencoder: an MLP straight from the context to the kernel."""

import torch.nn.functional as nnf
from torch import nn

from kernelmap.context import Context
from kernelmap.errors import InputError
from kernelmap.kernel import Kernel
from kernelmap.maps.base import KernelMap, MapOptions
from kernelmap.maps.domain import ContextShape


class Autoencoder(KernelMap):
    """K(x, y) = MLP[u_1(y)..u_d(y), f_1(x)..f_d(x)], token by token.

    The first layer is a sum of a part from y and a part from x, each evaluated once per point.
    """

    def __init__(self, shape: ContextShape, options: MapOptions) -> None:
        super().__init__(shape, options)
        if options.heads != 1 or options.normaliser is not None or options.layers != 2:
            raise InputError("Autoencoder has no layers, heads or normaliser to choose; it takes dk.")
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
