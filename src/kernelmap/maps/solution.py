"""The solution posterior map: the Green's function of an operator that is local, by way of that operator."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.context import Context
from kernelmap.errors import InputError
from kernelmap.grids import Grid
from kernelmap.kernel import Kernel
from kernelmap.maps.banded import KernelPosterior
from kernelmap.maps.local import LocalPosteriorMap
from kernelmap.maps.local_posterior import LocalPosterior

CHUNK = 64
"""Columns of the kernel whose variance is found at once."""


@dataclass(frozen=True)
class SolutionPosterior(KernelPosterior):
    """Solutions p = G g of A p = g, with G = A⁻¹ at the mean of a local A, and its error to first order:

        δp = -G δA p        Var p(x) = (1-θ) Σ_z G(x, z)² v(z) + θ (Σ_z |G(x, z)| v(z)^½)² ,   v = Var[A p]

    for the share θ of systematic errors, which may add up over the nodes z. `free` are the nodes that respond at all;
    elsewhere p is held at zero, as on a boundary.
    """

    local: LocalPosterior
    solution: Float[Tensor, "*b free free"]
    free: Int[Tensor, " free"]
    context: Context

    @cached_property
    def kernel(self) -> Float[Tensor, "*b M N"]:
        """G on all nodes, per quadrature weight."""
        return self._on_all(self._on_all(self.solution).mT).mT / self._weights

    @property
    def variance(self) -> Float[Tensor, "*b M N"]:
        """Of the kernel, to first order."""
        columns = self._on_all(self.solution).split(CHUNK, dim=-1)
        spread = torch.cat([self.local.response_moments(part)[1] for part in columns], dim=-1)
        variance = self._summed(spread)
        return self._on_all(self._on_all(variance).mT).mT / self._weights.square()

    @property
    def data_share(self) -> Float[Tensor, "*b M N"]:
        """That of the local operator's row at every node: the solution needs all of it."""
        rows = self.local.data_share.mean(dim=-1, keepdim=True)
        return self._on_all(rows).expand(*rows.shape[:-2], -1, self.context.y.size)

    @property
    def determined(self) -> int:
        """Directions of one row of the local operator that stand out of the noise."""
        return self.local.determined

    @property
    def noise(self) -> Float[Tensor, "*b"]:
        """The noise that was found, relative to the sources."""
        return self.local.noise

    def predict(self, U: Float[Tensor, "*b N n"]) -> tuple[Float[Tensor, "*b M n"], Float[Tensor, "*b M n"]]:
        """Mean and variance of the solutions for new sources."""
        mean = self._on_all(self.solution @ U[..., self.free, :])
        _, spread = self.local.predict(mean)
        return mean, self._on_all(self._summed(spread))

    def _summed(self, v: Float[Tensor, "*b free n"]) -> Float[Tensor, "*b free n"]:
        G, theta = self.solution, self.local.systematic
        return (1 - theta) * (G.square() @ v) + theta * (G.abs() @ v.sqrt()).square()

    @property
    def _weights(self) -> Float[Tensor, " N"]:
        return self.context.y.value_weights.to(self.solution)

    def _on_all(self, values: Float[Tensor, "*b free n"]) -> Float[Tensor, "*b M n"]:
        nodes = values.new_zeros(*values.shape[:-2], self.context.x.size, values.shape[-1])
        return nodes.index_copy(-2, self.free, values)


class SolutionPosteriorMap(LocalPosteriorMap):
    """K = A⁻¹ / w for a local operator A, which the pairs (f, u) the other way round give by `LocalPosteriorMap`.

    Its weights are those of a local posterior map. Noise on f is amplified by A: it is meant for f that are solved for,
    or measured very well.
    """

    @classmethod
    def of(cls, local: LocalPosteriorMap) -> "SolutionPosteriorMap":
        """With the weights of a trained local posterior map."""
        model = cls(local.shape, local.options).to(local.prior.white.dtype)
        model.load_state_dict(local.state_dict())
        return model

    def suited(self, context: Context) -> "SolutionPosteriorMap":
        return self

    def kernel(self, context: Context) -> Kernel:
        return Kernel(self.posterior(context).kernel, context.y, context.x)

    def standard_deviation(self, posterior: SolutionPosterior) -> Float[Tensor, "*b M N"]:
        return posterior.variance.sqrt()

    def posterior(self, context: Context, noise: float | None = None) -> SolutionPosterior:
        """Condition A on the pairs and invert it; `noise` is relative to the inputs u."""
        if context.y.points.shape != context.x.points.shape or not torch.equal(context.y.points, context.x.points):
            raise InputError("a solution operator needs inputs and outputs on the same nodes; interpolate one of them.")
        context = context.to(self.prior.white.dtype)
        free = (context.F != 0).any(dim=-1).reshape(-1, context.x.size).any(dim=0).nonzero()[:, 0]
        if not len(free):
            raise InputError("all responses f are zero: there is nothing to discover.")
        nodes = Grid(context.y.points[free], context.y.weights[free])
        reverse = Context._trusted(context.F, context.U[..., free, :], context.x, nodes)
        local = LocalPosteriorMap.posterior(self, reverse, noise)
        operator = local.lattice.rows_of(local.strengths, local.reach)[..., free]
        return SolutionPosterior(local, torch.linalg.inv(operator), free, context)
