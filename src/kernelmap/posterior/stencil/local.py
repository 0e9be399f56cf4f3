"""The local posterior map: kernels that act on nearby nodes, with a learned prior conditioned row by row."""

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.algebra.linear_gaussian import Regression, regress
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.mesh.lattice import Lattice
from kernelmap.core.progress import tracked
from kernelmap.maps.probabilistic import ProbabilisticMap
from kernelmap.posterior.stencil.loss import LocalLoss
from kernelmap.posterior.stencil.posterior import LocalPosterior
from kernelmap.posterior.stencil.prior import LocalOptions, LocalPrior

NOISE_LEVELS = (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3)
"""Relative noise on f that is tried."""

NOISE_ESTIMATION_ROWS = 100
"""Nodes whose rows judge the noise: it is the same everywhere, so some of them are enough."""


class LocalPosteriorMap(ProbabilisticMap):
    """K(x, .) acts on the nodes around x; its bonds' strengths have the learned prior `LocalPrior`.

    Given F = K diag(w) U + e, every row is a Bayesian regression of its own on the bonds of U:

        f_j(x) = Σ_o c_o(x) (u_j(x) - u_j(x + o)) + c_0(x) u_j(x) + e_j(x) ,   e ~ N(0, (σ² + η²) mean f²)

    The scale s is the one at which the mean kernel m responds as strongly as f; the noise level η is the likeliest of
    several. It takes any number of pairs in any order, any scale of u and f, and, as strengths belong
    to steps of the mesh, any regular mesh.
    """

    Options = LocalOptions
    Loss = LocalLoss

    def __init__(self, shape: ContextShape, options: LocalOptions) -> None:
        super().__init__(shape, options)
        if len(shape.y.low) != 2 or shape.x.is_point or (shape.y.components, shape.x.components) != (1, 1):
            raise InputError("the local posterior map needs inputs and outputs of one component on a plane mesh.")
        self.prior = LocalPrior(options)

    def posterior(self, context: Context, noise: float | None = None) -> LocalPosterior:
        """Condition on the pairs, with a known relative noise on f or the likeliest."""
        context = context.to(self.prior.nugget.dtype)
        lattice = Lattice.of(context.y, context.x)
        bonds = lattice.bonds(context.U.expand(*context.batch_shape, -1, -1), self.options.reach)
        mean = self.prior.mean()
        expected = mean @ bonds
        scale = _scale(expected, context.F.expand(expected.shape))
        X = torch.cat([bonds, expected[..., None, :]], dim=-2)
        power = (context.F / scale).square().mean(dim=(-2, -1), keepdim=True)
        f = context.F / scale - expected
        level = self._likeliest(X, f, power) if noise is None else torch.full_like(scale[..., 0, 0], noise)
        nugget = self.prior.nugget_variance()
        total = nugget + level.square()[..., None, None]
        regression = self._regress(X, f, power * total)
        reach = self.options.reach
        return LocalPosterior(mean, regression, scale, power * total, level, nugget / total, lattice, reach, context)

    def _regress(
        self, X: Float[Tensor, "*b M R d"], f: Float[Tensor, "*b M d"], error: Float[Tensor, "*#b 1 1"]
    ) -> Regression:
        omega = self.prior.weights()
        return regress(X, error.expand_as(f), f, omega.reshape(1, *[1] * (X.ndim - 2), -1))

    @torch.no_grad()
    def _likeliest(
        self, X: Float[Tensor, "*b M R d"], f: Float[Tensor, "*b M d"], power: Float[Tensor, "*b 1 1"]
    ) -> Float[Tensor, "*b"]:
        rows = slice(None, None, max(1, f.shape[-2] // NOISE_ESTIMATION_ROWS))
        scores = []
        for level in tracked(NOISE_LEVELS):
            error = power * (self.prior.nugget_variance() + level**2)
            regression = self._regress(X[..., rows, :, :], f[..., rows, :], error)
            scores.append(-(regression.misfit + regression.log_det)[0].sum(dim=-1))
        return f.new_tensor(NOISE_LEVELS)[torch.stack(scores).argmax(dim=0)]


def _scale(expected: Float[Tensor, "*b M d"], f: Float[Tensor, "*b M d"]) -> Float[Tensor, "*b 1 1"]:
    """What makes the expected responses as large as f: at the median node, as constrained ones do not respond."""
    powers = [values.square().sum(dim=-1) for values in (f, expected)]
    ratio = (powers[0] / powers[1]).nanmedian(dim=-1).values
    if not (ratio.isfinite() & (ratio > 0)).all():
        raise InputError(
            "the responses f, or the differences of u, are zero at most nodes: there is nothing to discover."
        )
    sign = torch.where((expected * f).sum(dim=(-2, -1)) < 0, -1, 1)
    return (sign * ratio.sqrt())[..., None, None]
