"""The likeliest stiffnesses of a medium's cells, by Gauss-Newton steps with damping (Levenberg and Marquardt)."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.progress import tracked
from kernelmap.posterior.elastic.medium import Medium

STEPS = 15
RTOL = 1e-3
"""Relative change of the objective below which no further step is taken."""

LEAST_DAMPING, MOST_DAMPING = 1e-6, 1e6


class Fit(NamedTuple):
    """θ at the minimum, the solution operator G = A⁻¹ there, and half the Hessian of the objective."""

    theta: Float[Tensor, " cells"]
    solution: Float[Tensor, "free free"]
    hessian: Float[Tensor, "cells cells"]


@dataclass(frozen=True)
class Problem:
    """Minimise Σ_j w_j |u_j - A(c)⁻¹ b_j|² + (θ - m)ᵀ P (θ - m) over θ = log c."""

    medium: Medium
    b: Float[Tensor, "free d"]
    u: Float[Tensor, "free d"]
    w: Float[Tensor, " d"]
    mean: Float[Tensor, " cells"]
    precision: Float[Tensor, "cells cells"]

    def at(self, theta: Float[Tensor, " cells"]) -> "Point":
        G = torch.cholesky_inverse(torch.linalg.cholesky(self.medium.stiffness(theta.exp())))
        u = G @ self.b
        away = theta - self.mean
        value = (self.w * (self.u - u).square()).sum() + away @ self.precision @ away
        return Point(theta, G, u, float(value))

    def normal_equations(
        self, point: "Point", dtype: torch.dtype = torch.float32
    ) -> tuple[Float[Tensor, "cells cells"], Float[Tensor, " cells"]]:
        """Jᵀ W J + P and Jᵀ W r - P (θ - m), from ∂u_j/∂θ_p = -c_p G Σ_r φ_pr φ_prᵀ u_j without building J:

        (JᵀWJ)_pq = c_p c_q Σ_rs (φ_prᵀ G² φ_qs) Σ_j w_j (φ_prᵀ u_j) (φ_qsᵀ u_j)
        """
        medium, c = self.medium, point.theta.exp()
        strains = medium.strains(point.u)
        adjoint = medium.strains(point.solution @ (self.w * (self.u - point.u)))
        slope = -c * (strains * adjoint).sum(dim=-1).reshape(-1, medium.count).sum(dim=0)
        G = point.solution.to(dtype)
        through = medium.strains(medium.strains(G @ G).mT)
        weighted = (strains * self.w.sqrt()).to(dtype)
        products = (weighted @ weighted.mT).mul_(through).reshape(-1, medium.count, len(strains)).sum(dim=0)
        curvature = products.reshape(medium.count, -1, medium.count).sum(dim=1).to(c) * c[:, None] * c
        away = point.theta - self.mean
        return curvature + self.precision, slope - self.precision @ away

    def solve(self, start: Float[Tensor, " cells"] | None = None) -> Fit:
        """From a start, or the prior mean, downhill until a step hardly helps."""
        point, damping = self.at(self.mean if start is None else start), 1e-3
        for _ in tracked(range(STEPS)):
            new = self._downhill(point, *self.normal_equations(point), damping)
            if new is None:
                break
            gain = 1 - new[0].value / point.value
            point, damping = new[0], max(new[1] / 10, LEAST_DAMPING)
            if gain < RTOL:
                break
        # Steps may be rough, but where the pairs tell much the spread is lost in the rounding of single precision.
        return Fit(point.theta, point.solution, self.normal_equations(point, torch.float64)[0])

    def _downhill(self, point: "Point", hessian: Tensor, slope: Tensor, damping: float) -> "tuple[Point, float] | None":
        while damping < MOST_DAMPING:
            factor, failed = torch.linalg.cholesky_ex(hessian + damping * hessian.diagonal().diag())
            step = torch.cholesky_solve(slope[:, None], factor)[:, 0]
            if not failed and step.abs().max() < 20:
                new = self.at(point.theta + step)
                if new.value < point.value:
                    return new, damping
            damping *= 10
        return None


class Point(NamedTuple):
    """θ, G, the responses u and the objective's value."""

    theta: Float[Tensor, " cells"]
    solution: Float[Tensor, "free free"]
    u: Float[Tensor, "free d"]
    value: float
