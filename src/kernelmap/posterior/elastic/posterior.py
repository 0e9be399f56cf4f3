"""What is known of a medium after the pairs were seen, and the responses it gives."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.kernel import Kernel
from kernelmap.core.posterior import ESTIMATES, HiddenField, KernelPosterior, Prediction, check_one_system
from kernelmap.posterior.elastic.medium import Medium
from kernelmap.posterior.elastic.second_order import second_order

SAMPLES = 12
"""Media drawn for the spread of kernels and responses."""

STATE = ("prior_precision", "theta", "hessian", "second", "second_covariance", "residual", "largest")
"""Fields that a saved posterior holds."""


@ESTIMATES.register("elastic")
@dataclass(frozen=True)
class MediumPosterior(KernelPosterior):
    """θ = log c ~ N(theta, hessian⁻¹), by the curvature at its most probable value, and G = A(c)⁻¹ there.

    The kernel is K = G M / w on the free values: the responses to small loads. `second` are the coefficients of what
    larger ones add to them. `residual` is the relative error of the known responses, and `largest` the norm of the
    largest of their linear parts: beyond it the error, which is of third order, grows as its square. The batch *b is
    that of the context.
    """

    medium: Medium
    prior_precision: Float[Tensor, "cells cells"]
    context: Context
    theta: Float[Tensor, "*b cells"]
    solution: Float[Tensor, "*b free free"]
    hessian: Float[Tensor, "*b cells cells"]
    second: Float[Tensor, "*b 3"]
    second_covariance: Float[Tensor, "*b 3 3"]
    residual: Float[Tensor, "*b"]
    largest: Float[Tensor, "*b"]

    @cached_property
    def mean(self) -> Float[Tensor, "*b M N"]:
        """At the most probable stiffnesses."""
        return self._kernel(self.solution)

    @property
    def stiffness(self) -> Float[Tensor, "*b cells"]:
        """Of every cell: the most probable value."""
        return self.theta.exp()

    @property
    def relative_residual(self) -> Float[Tensor, "*b"]:
        """The relative error of the responses, which holds all that is of third order in the loads."""
        return self.residual

    @property
    def informed_directions(self) -> int:
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
        corner = self.context.x.points.amin(dim=0)
        theta, spread = (values.reshape(self.medium.count) / math.log(10) for values in (self.theta, self.spread))
        constants = {} if math.isnan(self.medium.poisson) else {"poisson_ratio": self.medium.poisson}
        constants |= {f"second_order_{k + 1}": float(alpha) for k, alpha in enumerate(self.second.flatten())}
        places = corner + self.medium.longest * self.medium.centres
        return HiddenField("log₁₀ of Young's modulus", places, theta, spread, constants)

    @property
    def stiffness_variance_reduction(self) -> Float[Tensor, "*b cells"]:
        """1 - posterior variance / prior variance of every θ."""
        return (1 - self.spread.square() / torch.linalg.inv(self.prior_precision).diagonal()).clamp(0, 1)

    @property
    def variance_reduction(self) -> Float[Tensor, "*b M N"]:
        """The mean of all cells' shares: a response depends on all of them."""
        reduction = self.stiffness_variance_reduction.mean(dim=-1)[..., None, None]
        return reduction.expand(*reduction.shape[:-2], self.context.x.size, self.context.y.size)

    @property
    def std(self) -> Float[Tensor, "*b M N"]:
        """Standard deviation of the kernel, from a few media drawn from the posterior."""
        mean, squares = self.mean, torch.zeros_like(self.mean)
        for G in self._drawn:
            squares += (self._kernel(G) - mean).square()
        return (squares / SAMPLES).sqrt()

    def predict(self, U: Float[Tensor, "*b N n"]) -> Prediction:
        """The responses to new loads; larger ones have larger errors than those that are known."""
        b = self.medium.mass @ U
        linear = self.solution @ b
        terms = self._second_order(linear)
        spread = sum((G @ b - linear).square() for G in self._drawn) / SAMPLES
        spread = spread + torch.einsum("...kfn,...kl,...lfn->...fn", terms, self.second_covariance, terms)
        growth = (linear.norm(dim=-2, keepdim=True) / self.largest[..., None, None]).square().clamp(min=1)
        error = (self.residual[..., None, None] * growth).square() * linear.square().mean(dim=-2, keepdim=True)
        return Prediction(self._on_all(self._sum(linear, terms)), self._on_all(spread + error).sqrt())

    def respond(self, U: Float[Tensor, "*#b N n"]) -> Float[Tensor, "*b M n"]:
        """The responses to new loads, to second order."""
        linear = self.solution @ (self.medium.mass @ U)
        return self._on_all(self._sum(linear, self._second_order(linear)))

    def _sum(self, linear: Float[Tensor, "*b free n"], terms: Float[Tensor, "*b 3 free n"]) -> Tensor:
        return linear + (self.second[..., None, None] * terms).sum(dim=-3)

    def _second_order(self, linear: Float[Tensor, "*b free n"]) -> Float[Tensor, "*b 3 free n"]:
        """What the three terms add to linear responses."""
        systems = zip(
            self.stiffness.reshape(-1, self.medium.count),
            self.solution.reshape(-1, *self.solution.shape[-2:]),
            linear.reshape(-1, *linear.shape[-2:]),
            strict=True,
        )
        terms = torch.stack([second_order(self.medium, c, G, v) for c, G, v in systems])
        return terms.reshape(*linear.shape[:-2], *terms.shape[1:])

    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count M N"]:
        """Kernels of media of one system, drawn from the posterior."""
        check_one_system(self.context)
        drawn = torch.stack([self._kernel(G) for G in self._solutions(count, generator)])
        return drawn.reshape(count, *self.mean.shape[-2:])

    @cached_property
    def _drawn(self) -> list[Float[Tensor, "*b free free"]]:
        """Solution operators of a few media, the same in every run."""
        return self._solutions(SAMPLES, torch.Generator().manual_seed(0))

    def _solutions(self, count: int, generator: torch.Generator | None) -> list[Float[Tensor, "*b free free"]]:
        """Solution operators of media drawn from the posterior."""
        half = torch.linalg.cholesky(self.hessian).mT
        shape = (*self.theta.shape, 1)
        draws = [torch.randn(shape, generator=generator, dtype=torch.float64).to(half.device) for _ in range(count)]
        thetas = [self.theta + torch.linalg.solve_triangular(half, z, upper=True)[..., 0] for z in draws]
        return [solutions(self.medium, theta) for theta in thetas]

    def state(self) -> dict[str, Tensor]:
        """The stiffnesses with their curvature; the solution operators follow from them."""
        kept = {name: getattr(self, name) for name in STATE}
        ratio = torch.tensor(self.medium.poisson, dtype=torch.float64)
        return kept | {"free": self.medium.free, "modes": self.medium.modes, "poisson": ratio}

    @classmethod
    def restored(cls, state: dict[str, Tensor], kernel: Kernel, d: int) -> "MediumPosterior":
        kept = {name: state[name] for name in STATE}
        # Files of 0.1.0 do not hold the ratio; the modes do.
        ratio = float(state["poisson"]) if "poisson" in state else math.nan
        medium = replace(Medium.of(kernel.x, state["free"], 0.0), modes=state["modes"], poisson=ratio)
        context = Context.without_pairs(kernel.y, kernel.x, d)
        return cls(medium=medium, context=context, solution=solutions(medium, kept["theta"]), **kept)

    def _kernel(self, G: Float[Tensor, "*b free free"]) -> Float[Tensor, "*b M N"]:
        return self._on_all(G @ self.medium.mass) / self.context.y.value_weights.to(G)

    def _on_all(self, values: Float[Tensor, "*b free n"]) -> Float[Tensor, "*b M n"]:
        """With zeros where values are constrained."""
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
