"""What is known of a medium after the pairs were seen, and the responses it gives."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.context import Context
from kernelmap.maps.banded import HiddenField, KernelPosterior
from kernelmap.maps.medium import Medium
from kernelmap.maps.second_order import TERMS, second_order

SAMPLES = 12
"""Media drawn for the spread of kernels and responses."""


@dataclass(frozen=True)
class MediumPosterior(KernelPosterior):
    """θ = log c ~ N(theta, hessian⁻¹), by the curvature at its most probable value, and G = A(c)⁻¹ there.

    The kernel is K = G M / w on the free values: the responses to small loads. `second` are the coefficients of what
    larger ones add to them, `residual` is the relative error of the responses that are known. The batch *b is that of
    the context.
    """

    medium: Medium
    theta: Float[Tensor, "*b cells"]
    solution: Float[Tensor, "*b free free"]
    hessian: Float[Tensor, "*b cells cells"]
    prior_precision: Float[Tensor, "cells cells"]
    second: Float[Tensor, "*b 3"]
    residual: Float[Tensor, "*b"]
    context: Context

    @property
    def kernel(self) -> Float[Tensor, "*b M N"]:
        """At the most probable stiffnesses."""
        return self._kernel(self.solution)

    @property
    def stiffness(self) -> Float[Tensor, "*b cells"]:
        """Of every cell: the most probable value."""
        return self.theta.exp()

    @property
    def noise(self) -> Float[Tensor, "*b"]:
        """The relative error of the responses, which holds all that is of third order in the loads."""
        return self.residual

    @property
    def determined(self) -> int:
        """Directions of θ, of the first system, that stand out of the noise."""
        first = self.hessian.reshape(-1, *self.hessian.shape[-2:])[0]
        half = torch.linalg.cholesky(self.prior_precision)
        whitened = torch.linalg.solve_triangular(half, first, upper=False)
        whitened = torch.linalg.solve_triangular(half, whitened.mT, upper=False)
        return int((torch.linalg.eigvalsh(whitened) > 2).sum())

    @property
    def spread(self) -> Float[Tensor, "*b cells"]:
        """Standard deviation of every θ."""
        return torch.linalg.inv(self.hessian).diagonal(dim1=-2, dim2=-1).sqrt()

    @property
    def hidden(self) -> HiddenField:
        """The stiffness of the cells of one system."""
        points = self.context.x.points
        low, extent = points.amin(dim=0), points.amax(dim=0) - points.amin(dim=0)
        share = self.medium.centres * max(self.medium.cells) / torch.tensor(self.medium.cells)
        theta, spread = (values.reshape(self.medium.count) / math.log(10) for values in (self.theta, self.spread))
        return HiddenField("log₁₀ of Young's modulus", low + extent * share, theta, spread)

    @property
    def stiffness_share(self) -> Float[Tensor, "*b cells"]:
        """1 - posterior variance / prior variance of every θ."""
        return (1 - self.spread.square() / torch.linalg.inv(self.prior_precision).diagonal()).clamp(0, 1)

    @property
    def data_share(self) -> Float[Tensor, "*b M N"]:
        """The mean of all cells' shares: a response depends on all of them."""
        share = self.stiffness_share.mean(dim=-1)[..., None, None]
        return share.expand(*share.shape[:-2], self.context.x.size, self.context.y.size)

    @property
    def std(self) -> Float[Tensor, "*b M N"]:
        """Standard deviation of the kernel, from a few media drawn from the posterior."""
        mean, squares = self.kernel, torch.zeros_like(self.kernel)
        for G in self._drawn:
            squares += (self._kernel(G) - mean).square()
        return (squares / SAMPLES).sqrt()

    def predict(self, U: Float[Tensor, "*b N n"]) -> tuple[Float[Tensor, "*b M n"], Float[Tensor, "*b M n"]]:
        """Mean and variance of the responses to new loads; the error is as large as that of the known responses."""
        b = self.medium.mass @ U
        linear = self.solution @ b
        spread = sum((G @ b - linear).square() for G in self._drawn) / SAMPLES
        error = self.residual[..., None, None].square() * linear.square().mean(dim=-2, keepdim=True)
        return self.respond(U), self._on_all(spread + error)

    def respond(self, U: Float[Tensor, "*#b N n"]) -> Float[Tensor, "*b M n"]:
        """The responses to new loads, to second order."""
        linear = self.solution @ (self.medium.mass @ U)
        systems = zip(
            self.stiffness.reshape(-1, self.medium.count),
            self.solution.reshape(-1, *self.solution.shape[-2:]),
            linear.reshape(-1, *linear.shape[-2:]),
            self.second.reshape(-1, TERMS, 1, 1),
            strict=True,
        )
        more = [(alpha * second_order(self.medium, c, G, v)).sum(dim=0) for c, G, v, alpha in systems]
        return self._on_all(linear + torch.stack(more).reshape(linear.shape))

    @cached_property
    def _drawn(self) -> list[Float[Tensor, "*b free free"]]:
        """Solution operators of media drawn from the posterior, the same in every run."""
        generator = torch.Generator().manual_seed(0)
        half = torch.linalg.cholesky(self.hessian).mT
        shape = (*self.theta.shape, 1)
        draws = [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(SAMPLES)]
        thetas = [self.theta + torch.linalg.solve_triangular(half, z, upper=True)[..., 0] for z in draws]
        return [solutions(self.medium, theta) for theta in thetas]

    def _kernel(self, G: Float[Tensor, "*b free free"]) -> Float[Tensor, "*b M N"]:
        return self._on_all(G @ self.medium.mass) / self.context.y.value_weights.to(G)

    def _on_all(self, values: Float[Tensor, "*b free n"]) -> Float[Tensor, "*b M n"]:
        """With zeros where values are held."""
        everywhere = values.new_zeros(*values.shape[:-2], self.context.x.size, values.shape[-1])
        everywhere[..., self.medium.free, :] = values
        return everywhere


def solutions(medium: Medium, theta: Float[Tensor, "*b cells"]) -> Float[Tensor, "*b free free"]:
    """A(exp θ)⁻¹ of every system."""
    found = [
        torch.cholesky_inverse(torch.linalg.cholesky(medium.stiffness(each.exp())))
        for each in theta.reshape(-1, medium.count)
    ]
    return torch.stack(found).reshape(*theta.shape[:-1], len(medium.free), len(medium.free))
