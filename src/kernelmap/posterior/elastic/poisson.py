"""Poisson's ratio of a medium, from the pairs its stiffnesses were found from.

To first order the responses of another ratio are u + g δ with g = ∂u/∂ν = -A⁻¹ (∂A/∂ν) u, and the stiffnesses follow
with J = ∂u/∂θ. With both free, and H = Jᵀ W J + P, what the pairs say is

    δ = (gᵀ W r - tᵀ H⁻¹ Jᵀ W r) / κ ± κ^-½ ,      t = Jᵀ W g ,      κ = gᵀ W g - tᵀ H⁻¹ t
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.posterior.elastic.fit import Fit, Problem

LEAST, MOST = -0.5, 0.49
"""Beyond the first there are hardly any solids; beyond the second bilinear cells lock."""

TOLERANCE = 0.02
"""The learned ratio is kept where the pairs ask for a change that is smaller, or within three standard deviations."""

ROUNDS = 6


class Poisson(NamedTuple):
    """What the pairs say of the ratio: its change from the one taken, times κ, and κ."""

    slope: Float[Tensor, ""]
    curvature: Float[Tensor, ""]

    def next(self, poisson: float, tolerance: float) -> float:
        """The ratio that the pairs ask for, by a Newton step of log(½ - ν); the same where it is within tolerance."""
        delta, std = float(self.slope / self.curvature), float(self.curvature) ** -0.5
        if abs(delta) <= max(tolerance, 3 * std):
            return poisson
        room = 0.5 - poisson
        return min(max(0.5 - room * math.exp(-delta / room), LEAST), MOST)


def poisson_of(problem: Problem, fit: Fit) -> Poisson:
    """At the stiffnesses found, from responses without their part of second order."""
    medium, c = problem.medium, fit.theta.exp()
    u = fit.solution @ problem.b
    g = -fit.solution @ medium.forces_of_poisson(c, u)

    def back(residual: Float[Tensor, "free d"]) -> Float[Tensor, " cells"]:
        adjoint = medium.strains(fit.solution @ (problem.w * residual))
        return -c * (medium.strains(u) * adjoint).sum(dim=-1).reshape(-1, medium.count).sum(dim=0)

    r = problem.u - u
    t = back(g)
    followed = torch.linalg.solve(fit.hessian, torch.stack([back(r), t], dim=1))
    slope = (problem.w * g * r).sum() - t @ followed[:, 0]
    return Poisson(slope, (problem.w * g.square()).sum() - t @ followed[:, 1])
