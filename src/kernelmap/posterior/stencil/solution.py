"""The solution posterior map: the Green's function of an operator that is local, by way of that operator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.core.context import Context, responding
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.kernel import Kernel
from kernelmap.core.posterior import ESTIMATES, KernelPosterior, Prediction, check_one_system
from kernelmap.core.state import prefixed, under
from kernelmap.core.systems import SystemSet
from kernelmap.maps.base import KernelMap
from kernelmap.maps.registry import register
from kernelmap.posterior.stencil.local import LocalPosteriorMap
from kernelmap.posterior.stencil.posterior import LocalPosterior
from kernelmap.posterior.stencil.prior import LocalOptions

SHARES = torch.logspace(0, -6, 61, dtype=torch.float64).tolist()
"""Of systematic errors, that are tried."""


@ESTIMATES.register("solution")
@dataclass(frozen=True)
class SolutionPosterior(KernelPosterior):
    """Solutions p = G M g of A p = M g, with G = A⁻¹ at the mean of a local A, and its error to first order:

        δp = -G δA p        Var p(x) = (1-θ) Σ_z G(x, z)² v(z) + θ (Σ_z |G(x, z)| v(z)^½)² ,   v = Var[A p]

    for the share θ of systematic errors, which may add up over the nodes z; it is at least that of the local operator,
    and as large as the pairs of the context show. `free` are the nodes that respond at all; elsewhere p is constrained
    to zero, as on a boundary. M is the identity, unless g acts as averages (`averaging`).
    """

    local: LocalPosterior
    free: Int[Tensor, " free"]
    context: Context

    @cached_property
    def solution(self) -> Float[Tensor, "*b free free"]:
        """G between the nodes that respond."""
        operator = self.local.lattice.rows_of(self.local.strengths, self.local.reach)[..., self.free]
        inverse, singular = torch.linalg.inv_ex(operator)
        if singular.any():
            raise InputError("the local operator that the pairs show has no inverse; measure more and other pairs.")
        return inverse

    @cached_property
    def response(self) -> Float[Tensor, "*b free free"]:
        """G M."""
        averaging = self.local.averaging
        return self.solution if averaging is None else self.solution @ averaging.matrix

    @cached_property
    def mean(self) -> Float[Tensor, "*b M N"]:
        """G M on all nodes, per quadrature weight."""
        return self._on_grid(self.response)

    @cached_property
    def std(self) -> Float[Tensor, "*b M N"]:
        return self.variance.sqrt()

    @property
    def variance(self) -> Float[Tensor, "*b M N"]:
        """Of the kernel, to first order."""
        return self._variance(self._summed)

    def _variance(self, summed: Callable[[Tensor], Tensor]) -> Float[Tensor, "*b M N"]:
        """Of the kernel, where `summed` adds up the variances of A p over the nodes."""
        _, spread = self.local.response_moments(self._on_all(self.response))
        return self._on_grid(summed(spread)) / self._weights

    @property
    def variance_reduction(self) -> Float[Tensor, "*b M N"]:
        """That of the local operator's row at every node: the solution needs all of it."""
        rows = self.local.variance_reduction.mean(dim=-1, keepdim=True)
        return self._on_all(rows).expand(*rows.shape[:-2], -1, self.context.y.size)

    @property
    def informed_directions(self) -> int:
        """Directions of one row of the local operator that stand out of the noise."""
        return self.local.informed_directions

    @property
    def relative_residual(self) -> Float[Tensor, "*b"]:
        """The noise that was found, relative to the sources."""
        return self.local.relative_residual

    def predict(self, U: Float[Tensor, "*b N n"]) -> Prediction:
        """The solutions for new sources."""
        mean, v = self._moments(U)
        return Prediction(mean, self._on_all(self._summed(v)).sqrt())

    def _moments(self, U: Float[Tensor, "*b N n"]) -> tuple[Float[Tensor, "*b M n"], Float[Tensor, "*b free n"]]:
        """The solutions, and v with the errors of f."""
        mean = self._on_all(self.response @ U[..., self.free, :])
        _, spread = self.local.response_moments(mean)
        return mean, spread + self.local.scale.square() * self.local.error

    @torch.no_grad()
    def with_systematic_errors(self) -> "SolutionPosterior":
        """With the least θ at which the solutions of the context's own pairs are as far off as their deviations say.

        A is fitted to these pairs: of d, as many as it has parameters in use are not left to judge by.
        """
        mean, v = self._moments(self.context.U.expand(*self.context.batch_shape, -1, -1))
        d = self.context.d
        left = (1 - self.local.parameters_in_use / d).clamp(min=1 / d)[..., None, None]
        squares = (self.context.F - mean)[..., self.free, :].square() / left
        independent, together = (self._summed(v, theta) for theta in (0.0, 1.0))
        least = self.local.systematic
        theta = torch.ones_like(least)
        for share in SHARES:
            off = (squares / torch.lerp(independent, together, share)).mean(dim=(-2, -1), keepdim=True)
            theta = torch.where(off <= 1, share, theta)
        return replace(self, local=replace(self.local, systematic=torch.maximum(theta, least)))

    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count M N"]:
        """Kernels of one system, to first order: G - G δA G, stretched to the deviation that systematic errors add."""
        check_one_system(self.context)
        local = self.local.sample(count, generator) - self.local.mean.reshape(1, *self.local.mean.shape[-2:])
        G = self.solution.reshape(self.solution.shape[-2:])
        deviation = -G @ (local * self._weights)[..., self.free] @ self.response
        independent = self._variance(lambda v: self.solution.square() @ v).reshape(self.mean.shape[-2:]).sqrt()
        stretch = torch.where(independent > 0, self.std.reshape(independent.shape) / independent, 1.0)
        return self.mean.reshape(independent.shape) + self._on_grid(deviation) * stretch

    def state(self) -> dict[str, Tensor]:
        """That of the local operator, whose inverse is found again where it is needed."""
        return {"free": self.free} | prefixed("local", self.local.state())

    @classmethod
    def restored(cls, state: dict[str, Tensor], kernel: Kernel, d: int) -> "SolutionPosterior":
        free, y = state["free"], kernel.y
        nodes = Grid(y.points[free], y.weights[free])
        local = LocalPosterior.on_grids(under(state, "local"), Context.without_pairs(kernel.x, nodes, d))
        return cls(local, free, Context.without_pairs(y, kernel.x, d))

    def _summed(self, v: Float[Tensor, "*b free n"], theta: Tensor | float | None = None) -> Float[Tensor, "*b free n"]:
        G, theta = self.solution, self.local.systematic if theta is None else theta
        return (1 - theta) * (G.square() @ v) + theta * (G.abs() @ v.sqrt()).square()

    def _on_grid(self, G: Float[Tensor, "*b free free"]) -> Float[Tensor, "*b M N"]:
        """A kernel between all nodes, per quadrature weight."""
        return self._on_all(self._on_all(G).mT).mT / self._weights

    @property
    def _weights(self) -> Float[Tensor, " N"]:
        return self.context.y.value_weights.to(self.solution)

    def _on_all(self, values: Float[Tensor, "*b free n"]) -> Float[Tensor, "*b M n"]:
        nodes = values.new_zeros(*values.shape[:-2], self.context.x.size, values.shape[-1])
        return nodes.index_copy(-2, self.free, values)


@register("solution-posterior")
class SolutionPosteriorMap(LocalPosteriorMap):
    """K = A⁻¹ / w for a local operator A, which the pairs (f, u) the other way round give by `LocalPosteriorMap`.

    Its weights are those of a local posterior map. Noise on f is amplified by A: it is meant for f that are solved for,
    or measured very well.
    """

    Loss = None

    @classmethod
    def of(cls, local: LocalPosteriorMap) -> "SolutionPosteriorMap":
        """With the weights of a trained local posterior map."""
        model = cls(local.shape, local.options).to(local.prior.nugget)
        model.load_state_dict(local.state_dict())
        return model

    @classmethod
    def fit(cls, systems: SystemSet | Sequence[Context], d: int, options: LocalOptions) -> KernelMap:
        raise InputError("a solution-posterior takes the weights of a local-posterior, trained on the pairs reversed.")

    def posterior(self, context: Context, noise: float | None = None) -> SolutionPosterior:
        """Condition A on the pairs; `noise` is relative to the inputs u."""
        if context.y.points.shape != context.x.points.shape or not torch.equal(context.y.points, context.x.points):
            raise InputError("a solution operator needs inputs and outputs on the same nodes; interpolate one of them.")
        context = context.to(self.prior.nugget.dtype)
        free = responding(context.F).nonzero()[:, 0]
        if not len(free):
            raise InputError("all responses f are zero: there is nothing to discover.")
        nodes = Grid(context.y.points[free], context.y.weights[free])
        reverse = Context.unchecked(context.F, context.U[..., free, :], context.x, nodes)
        found = SolutionPosterior(LocalPosteriorMap.posterior(self, reverse, noise), free, context)
        return found.with_systematic_errors()
