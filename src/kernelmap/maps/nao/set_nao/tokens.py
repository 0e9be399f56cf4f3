"""Tokens in the context's own units, with the mean kernel's response taken off."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.kernel import Kernel
from kernelmap.maps.nao.set_nao.mean import MeanKernel


class Factors(NamedTuple):
    """K = left right."""

    left: Float[Tensor, "*#b M R"]
    right: Float[Tensor, "*#b R N"]


class Tokens(NamedTuple):
    """G = F - s m diag(h) U, of u and f that have root mean square 1, and of coordinates in a box of volume 1.

    `mean` is s m, `h` the quadrature weights of U in these coordinates. Where modes are sines, values on the boundary
    are left out. `u_scale`, `f_scale` and, for kernels, `unit` lead back to the units given.
    """

    U: Float[Tensor, "*#b N d"]
    G: Float[Tensor, "*b M d"]
    mean: Factors
    h: Float[Tensor, " N"]
    u_scale: Float[Tensor, "*#b 1 1"]
    f_scale: Float[Tensor, "*b 1 1"]
    unit: Float[Tensor, "*b 1 1"]

    @classmethod
    def of(cls, context: Context, mean: MeanKernel) -> "Tokens":
        h, h_x = (modes.weights(grid).to(context.U) for modes, grid in ((mean.y, context.y), (mean.x, context.x)))
        u, f = (
            modes.inside(grid).to(values)[:, None] * values
            for modes, grid, values in ((mean.y, context.y, context.U), (mean.x, context.x, context.F))
        )
        u_scale, f_scale = root_mean_square(u, h), root_mean_square(f, h_x)
        U, F = u / u_scale, f / f_scale
        left, right = mean.factors(context.x, context.y)
        expected = left @ (right @ (h[:, None] * U))
        s = amplitude(F, expected, h_x)
        unit = f_scale / u_scale / mean.y.volume
        return cls(U, F - s * expected, Factors(s * left, right), h, u_scale, f_scale, unit)

    def kernel(self, parts: list[Factors], context: Context) -> Kernel:
        """s m and further parts, as one product in the units given."""
        batch = context.batch_shape
        parts = [self.mean, *parts]
        left = torch.cat([part.left.expand(*batch, *part.left.shape[-2:]) for part in parts], dim=-1)
        right = torch.cat([part.right.expand(*batch, *part.right.shape[-2:]) for part in parts], dim=-2)
        return Kernel(right, context.y, context.x, left * self.unit)

    def respond(self, parts: list[Factors], U: Float[Tensor, "*#b N n"]) -> Float[Tensor, "*b M n"]:
        """What the same kernel responds to inputs, part by part."""
        functionals = self.h[:, None] * U / self.u_scale
        return self.f_scale * torch.stack([part.left @ (part.right @ functionals) for part in [self.mean, *parts]]).sum(
            0
        )


def amplitude(
    F: Float[Tensor, "*#b M d"], expected: Float[Tensor, "*#b M d"], h: Float[Tensor, " M"]
) -> Float[Tensor, "*b 1 1"]:
    """s = <F, m U> / |m U|²: the multiple of the mean kernel that responds most like the context."""
    weighted = h[:, None] * expected
    power = (weighted * expected).sum(dim=(-2, -1), keepdim=True)
    return (weighted * F).sum(dim=(-2, -1), keepdim=True) / torch.where(power > 0, power, 1)


def root_mean_square(values: Float[Tensor, "*b n d"], h: Float[Tensor, " n"]) -> Float[Tensor, "*b 1 1"]:
    """Over the box and the pairs; 1 for zeros.

    By way of the largest value, as squares of tiny and of huge numbers are not representable.
    """
    largest = values.abs().amax(dim=(-2, -1), keepdim=True)
    largest = torch.where(largest > 0, largest, 1)
    size = (h[:, None] * (values / largest).square()).sum(dim=-2, keepdim=True).mean(
        dim=-1, keepdim=True
    ).sqrt() * largest
    return torch.where(size > 0, size, 1)
