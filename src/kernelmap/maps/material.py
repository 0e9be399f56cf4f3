"""The material posterior map: responses of an elastic medium, by way of the stiffnesses of its cells."""

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.context import Context
from kernelmap.errors import InputError
from kernelmap.kernel import Kernel
from kernelmap.maps.banded import BandedMap
from kernelmap.maps.domain import ContextShape
from kernelmap.maps.medium import Medium
from kernelmap.maps.medium_fit import Fit, Problem
from kernelmap.maps.medium_posterior import MediumPosterior, solutions
from kernelmap.maps.medium_prior import MediumOptions, MediumPrior

RIGID = 3
"""Rigid motions of a plane body."""


class MaterialPosteriorMap(BandedMap):
    """K = A(c)⁻¹ M / w, the responses of a clamped medium in plane strain to body forces (two components each).

    The stiffness c_p of each cell is unknown, with the learned prior `MediumPrior`, and is conditioned on the pairs:

        Σ_j |u_j - A(c)⁻¹ M f_j|² / (σ |u_j|)² + (θ - m)ᵀ Σ⁻¹ (θ - m)  is least,      θ = log c

    All pairs tell about the same few unknowns, so that K carries over to loads unlike any that were seen. It takes any
    number of pairs in any order, any scale of loads and displacements, and any regular mesh. Values that are zero in
    all pairs are held.
    """

    Options = MediumOptions

    def __init__(self, shape: ContextShape, options: MediumOptions) -> None:
        super().__init__(shape, options)
        if (shape.y.components, shape.x.components, len(shape.y.low)) != (2, 2, 2) or shape.y != shape.x:
            raise InputError("the material posterior map needs loads and displacements of two components on one mesh.")
        self.prior = MediumPrior()

    def kernel(self, context: Context) -> Kernel:
        return Kernel(self.posterior(context).kernel, context.y, context.x)

    def standard_deviation(self, posterior: MediumPosterior) -> Float[Tensor, "*b M N"]:
        return posterior.std

    @torch.no_grad()
    def posterior(self, context: Context) -> MediumPosterior:
        """Condition every system of the batch on its pairs."""
        if not torch.equal(context.y.points, context.x.points):
            raise InputError("loads and displacements must be given on the same nodes; interpolate one of them.")
        context = context.to(torch.float64)
        free = (context.F != 0).any(dim=-1).reshape(-1, context.x.size).any(dim=0).nonzero()[:, 0]
        if not len(free):
            raise InputError("all displacements are zero: there is nothing to discover.")
        if context.x.size - len(free) < RIGID:
            raise InputError(
                f"{context.x.size - len(free)} displacements are zero in all pairs, but a medium must be held by at "
                f"least {RIGID}, or it drifts away; give the values on a clamped boundary too."
            )
        medium = Medium.of(context.x, free, float(self.prior.poisson))
        precision = torch.linalg.inv(self.prior.covariance(medium))
        loads, batch = medium.mass @ context.U, context.batch_shape
        b = loads.expand(*batch, *loads.shape[-2:]).reshape(-1, *loads.shape[-2:])
        u = context.F[..., free, :].expand(*batch, -1, -1).reshape(len(b), len(free), -1)
        uniform = solutions(medium, torch.zeros(medium.count, dtype=torch.float64))
        fits = [self._fit(medium, precision, uniform, *pair) for pair in zip(b, u, strict=True)]
        theta, G, hessian = (torch.stack(parts).reshape(*batch, *parts[0].shape) for parts in zip(*fits, strict=True))
        residual = _relative(u.reshape(*batch, *u.shape[1:]), G @ loads)
        return MediumPosterior(medium, theta, G, hessian, precision, residual, context)

    def _fit(
        self,
        medium: Medium,
        precision: Float[Tensor, "cells cells"],
        uniform: Float[Tensor, "free free"],
        b: Float[Tensor, "free d"],
        u: Float[Tensor, "free d"],
    ) -> Fit:
        norms = u.norm(dim=0)
        if not (norms > 0).all():
            raise InputError(f"{int((norms == 0).sum())} displacements are zero everywhere; drop those pairs.")
        scale = ((uniform @ b).norm(dim=0) / norms).median().log() + float(self.prior.mean)
        weights = (float(self.prior.noise) * norms) ** -2.0
        return Problem(medium, b, u, weights, scale.expand(medium.count), precision).solve()


def _relative(u: Float[Tensor, "*b free d"], predicted: Float[Tensor, "*b free d"]) -> Float[Tensor, "*b"]:
    """The error of the responses, relative to their norms, averaged over pairs."""
    return ((predicted - u).norm(dim=-2) / u.norm(dim=-2)).mean(dim=-1)
