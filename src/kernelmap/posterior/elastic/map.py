"""The material posterior map: responses of an elastic medium, by way of the stiffnesses of its cells."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.core.context import Context, responding
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.systems import SystemSet
from kernelmap.maps.base import NoOptions
from kernelmap.maps.probabilistic import ProbabilisticMap
from kernelmap.maps.registry import register
from kernelmap.posterior.elastic.fit import Fit, Problem
from kernelmap.posterior.elastic.medium import Medium
from kernelmap.posterior.elastic.poisson import ROUNDS, TOLERANCE, Poisson, poisson_of
from kernelmap.posterior.elastic.posterior import MediumPosterior, solutions
from kernelmap.posterior.elastic.prior import MediumPrior
from kernelmap.posterior.elastic.second_order import coefficients, second_order
from kernelmap.posterior.elastic.training import fit_prior

RIGID = 3
"""Rigid motions of a plane body."""


@register("material-posterior")
class MaterialPosteriorMap(ProbabilisticMap):
    """K = A(c)⁻¹ M / w, the responses of a clamped medium in plane strain to body forces (two components each).

    The stiffness c_p of each cell is unknown, with the learned prior `MediumPrior`, and is conditioned on the pairs:

        Σ_j |u_j - s_j - A(c)⁻¹ M f_j|² / (σ |u_j|)² + (θ - m)ᵀ Σ⁻¹ (θ - m)  is least,      θ = log c

    where s_j is the response's part of second order in the load (`second_order`), first zero, then that of the c found.
    To σ² the variance is then added of white noise as large as the misfit.

    Poisson's ratio is the learned one, unless the pairs ask for another (`poisson`), which is then that of all systems
    of a batch.

    All pairs inform the same few unknowns, so that K carries over to loads unlike any that were seen. It takes any
    number of pairs in any order, any scale of loads, displacements and lengths, and any regular mesh of a rectangle.
    Values that are zero in all pairs are constrained.
    """

    Loss = None
    any_range = True

    def __init__(self, shape: ContextShape, options: NoOptions) -> None:
        super().__init__(shape, options)
        if (shape.y.components, shape.x.components, len(shape.y.low)) != (2, 2, 2) or shape.y != shape.x:
            raise InputError("the material posterior map needs loads and displacements of two components on one mesh.")
        self.prior = MediumPrior()

    @classmethod
    def fit(cls, systems: SystemSet | Sequence[Context], d: int, options: NoOptions) -> "MaterialPosteriorMap":
        """With the prior's five numbers from the pairs of a few training specimens."""
        if not isinstance(systems, SystemSet):
            raise InputError(f"the {cls.name} map trains on systems of one grid; these have grids of their own.")
        model = cls(ContextShape.of(systems.batch(torch.arange(d)[None], torch.arange(1))), options).double()
        fit_prior(model, systems, d)
        return model

    def check_context(self, context: Context) -> None:
        """Lengths are relative to the longer side, so that any rectangle will do."""
        self.check_pairs(context.d)
        for grid, name in ((context.y, "loads"), (context.x, "displacements")):
            if (grid.dim, grid.components) != (2, 2):
                raise InputError(
                    f"the {name} of a medium have two components on the mesh of a plane, got {grid.components} "
                    f"component(s) in {grid.dim} dimension(s). `kernelmap models` names others."
                )

    @torch.no_grad()
    def posterior(self, context: Context) -> MediumPosterior:
        """Condition every system of the batch on its pairs."""
        if not torch.equal(context.y.points, context.x.points):
            raise InputError("loads and displacements must be given on the same nodes; interpolate one of them.")
        context = context.to(torch.float64)
        free = responding(context.F).nonzero()[:, 0]
        if not len(free):
            raise InputError("all displacements are zero: there is nothing to discover.")
        if context.x.size - len(free) < RIGID:
            raise InputError(
                f"{context.x.size - len(free)} displacements are zero in all pairs, but a medium must be held by at "
                f"least {RIGID}, or it drifts away; give the values on a clamped boundary too."
            )
        ratio = float(self.prior.poisson)
        found, said = self._with_ratio(context, free, ratio)
        better = said.next(ratio, TOLERANCE)
        for _ in range(ROUNDS):
            if better == ratio:
                break
            ratio = better
            found, said = self._with_ratio(context, free, ratio)
            better = said.next(ratio, 0.0)
        return found

    def _with_ratio(
        self, context: Context, free: Int[Tensor, " free"], ratio: float
    ) -> tuple[MediumPosterior, Poisson]:
        """The stiffnesses of all systems with one of Poisson's ratios, and what the pairs say of that."""
        medium = Medium.of(context.x, free, ratio)
        precision = torch.linalg.inv(self.prior.covariance(medium))
        loads, batch = medium.mass @ context.U, context.batch_shape
        b = loads.expand(*batch, *loads.shape[-2:]).reshape(-1, *loads.shape[-2:])
        u = context.F[..., free, :].expand(*batch, -1, -1).reshape(len(b), len(free), -1)
        uniform = solutions(medium, context.U.new_zeros(medium.count))
        fits, ratios = zip(
            *[self._fit(medium, precision, uniform, *pair) for pair in zip(b, u, strict=True)], strict=True
        )
        stacked = [torch.stack(parts).reshape((*batch, *parts[0].shape)) for parts in zip(*fits, strict=True)]
        said = Poisson(*(torch.stack(parts).sum() for parts in zip(*ratios, strict=True)))
        return MediumPosterior(medium, precision, context, *stacked), said

    def _fit(
        self,
        medium: Medium,
        precision: Float[Tensor, "cells cells"],
        uniform: Float[Tensor, "free free"],
        b: Float[Tensor, "free d"],
        u: Float[Tensor, "free d"],
    ) -> tuple[tuple[Tensor, ...], Poisson]:
        """The fields of a `MediumPosterior` that belong to one system, and what it says of Poisson's ratio."""
        norms = u.norm(dim=0)
        if not (norms > 0).all():
            raise InputError(f"{int((norms == 0).sum())} displacements are zero everywhere; drop those pairs.")
        scale = ((uniform @ b).norm(dim=0) / norms).median().log() + float(self.prior.mean)
        noise = float(self.prior.noise) ** 2
        problem = Problem(medium, b, u, 1 / (noise * norms**2), scale.expand(medium.count), precision)
        fit = problem.solve()
        curved, *_ = _second_order(problem, fit)
        # What is left over counts as errors of the single values, which add up to little unless the pairs are noisy.
        noise += float(_left(problem, fit, curved)) ** 2 / len(u)
        again = replace(problem, u=u - curved, w=1 / (noise * norms**2))
        fit = again.solve(fit.theta)
        said = poisson_of(again, fit)
        curved, *second = _second_order(replace(again, u=u), fit)
        largest = (fit.solution @ b).norm(dim=0).max()
        return (*fit, *second, _left(problem, fit, curved), largest), said


def _second_order(
    problem: Problem, fit: Fit
) -> tuple[Float[Tensor, "free d"], Float[Tensor, " 3"], Float[Tensor, "3 3"]]:
    """The part of second order of all responses, its coefficients and their covariance."""
    linear = fit.solution @ problem.b
    terms = second_order(problem.medium, fit.theta.exp(), fit.solution, linear)
    second, covariance = coefficients(terms, problem.u - linear, problem.w)
    return (second[:, None, None] * terms).sum(dim=0), second, covariance


def _left(problem: Problem, fit: Fit, curved: Float[Tensor, "free d"]) -> Float[Tensor, ""]:
    """The error of the responses relative to their norms, averaged over pairs."""
    return ((fit.solution @ problem.b + curved - problem.u).norm(dim=0) / problem.u.norm(dim=0)).mean()
