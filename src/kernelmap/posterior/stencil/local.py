"""The local posterior map: kernels that act on nearby nodes, with a learned prior conditioned row by row."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kernelmap.core.algebra.linear_gaussian import Regression, regress
from kernelmap.core.context import Context, responding
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.mesh.lattice import Lattice
from kernelmap.core.progress import tracked
from kernelmap.maps.probabilistic import ProbabilisticMap
from kernelmap.posterior.stencil.averaging import GAMMAS, Averaging
from kernelmap.posterior.stencil.loss import LocalLoss
from kernelmap.posterior.stencil.posterior import LocalPosterior
from kernelmap.posterior.stencil.prior import LocalOptions, LocalPrior

NOISE_LEVELS = (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3)
"""Relative noise on f that is tried."""

FINER = tuple(10 ** (k / 8) for k in range(-3, 4))
"""Between those: errors of a mesh, unlike noise that someone has chosen, have no round size."""

NOISE_ESTIMATION_ROWS = 100
"""Nodes whose rows judge the noise: it is the same everywhere, so some of them are enough."""


class LocalPosteriorMap(ProbabilisticMap):
    """K(x, .) acts on the nodes around x; its bonds' strengths have the learned prior `LocalPrior`.

    Given F = K diag(w) U + e, every row is a Bayesian regression of its own on the bonds of U:

        f_j(x) = Σ_o c_o(x) (u_j(x) - u_j(x + o)) + c_0(x) u_j(x) + e_j(x) ,   e ~ N(0, (σ² + η²) mean f²)

    The scale s is the one at which the mean kernel m responds as strongly as f; the noise level η is the likeliest of
    several, together with the averaging M of f (`averaging`), which then stands for f. Values of f at nodes where u is
    zero in all pairs ("reactions") have a noise level of their own. It takes any number of pairs in any order, any
    scale of u and f, and, as strengths belong to steps of the mesh, any regular mesh of a line or a rectangle; where
    the steps along both axes differ, strengths are those of square cells times |o|² / |h o|².
    """

    Options = LocalOptions
    Loss = LocalLoss
    any_range = True

    def __init__(self, shape: ContextShape, options: LocalOptions) -> None:
        super().__init__(shape, options)
        if len(shape.y.low) != 2 or shape.x.is_point or (shape.y.components, shape.x.components) != (1, 1):
            raise InputError("the local posterior map needs inputs and outputs of one component on a plane mesh.")
        self.prior = LocalPrior(options)

    def check_context(self, context: Context) -> None:
        """Bonds know steps of the mesh only, so that any regular mesh will do, of a line too."""
        self.check_pairs(context.d)
        Lattice.of(context.y, context.x)

    def posterior(self, context: Context, noise: float | None = None) -> LocalPosterior:
        """Condition on the pairs; the noise on f and γ are the likeliest, or a known relative noise and γ = 0."""
        context = context.to(self.prior.nugget.dtype)
        lattice, reach = Lattice.of(context.y, context.x), self.options.reach
        stretch = lattice.stretch(reach).to(context.F)
        bonds = stretch[:, None] * lattice.bonds(context.U.expand(*context.batch_shape, -1, -1), reach)
        mean = self.prior.mean()
        expected = mean @ bonds
        scale = _scale(expected, context.F.expand(expected.shape))
        X = torch.cat([bonds, expected[..., None, :]], dim=-2)
        f, reactions = context.F / scale, responding(context.F) & ~responding(context.U)[lattice.at]
        power = f.square().mean(dim=(-2, -1), keepdim=True)
        level, averaging = torch.full_like(scale[..., 0, 0], noise or 0.0), None
        if noise is None:
            level, averaging = self._likeliest_of_all(X, f, expected, power, lattice, reactions)
        total = self.prior.nugget_variance() + level.square()[..., None, None]
        if noise is None and reactions.any():
            levels = [*_levels(power), torch.ones_like(level)]
            own, _ = self._likeliest(X, f - expected, power, _some(reactions), levels)
            total = torch.where(reactions[:, None], self.prior.nugget_variance() + own[..., None, None] ** 2, total)
        f = f if averaging is None else averaging.apply(f)
        regression = self._regress(X, f - expected, power * total)
        systematic = self.prior.nugget_variance() / total
        found = LocalPosterior(mean, regression, scale, power * total, level, systematic, lattice, reach, context)
        return replace(found, averaging=averaging, reactions=int(reactions.sum()))

    def _regress(
        self, X: Float[Tensor, "*b M R d"], f: Float[Tensor, "*b M d"], error: Float[Tensor, "*#b #M 1"]
    ) -> Regression:
        omega = self.prior.weights()
        return regress(X, error.expand_as(f), f, omega.reshape(1, *[1] * (X.ndim - 2), -1))

    @torch.no_grad()
    def _likeliest_of_all(
        self,
        X: Float[Tensor, "*b M R d"],
        f: Float[Tensor, "*b M d"],
        expected: Float[Tensor, "*b M d"],
        power: Float[Tensor, "*b 1 1"],
        lattice: Lattice,
        reactions: Bool[Tensor, " M"],
    ) -> tuple[Float[Tensor, "*b"], Averaging | None]:
        """The noise level, and M unless γ = 0; f that a scheme explains exactly are not looked at any further."""
        rows, free = _some(~reactions), responding(f) & ~reactions
        level, _ = self._likeliest(X, f - expected, power, rows, _levels(power))
        if not level.any():
            return level, None
        evidence, gamma = torch.full_like(level, -torch.inf), torch.zeros_like(level)
        for other in GAMMAS:
            averaging = Averaging.of(lattice, free, torch.full_like(power, other))
            averaged = averaging.apply(f) - expected
            rough, _ = self._likeliest(X, averaged, power, rows, _levels(power))
            finer, score = self._likeliest(X, averaged, power, rows, [rough * factor for factor in FINER])
            # log p(f) = log p(M f) + log |det M|, of the nodes that are looked at; all of it twice.
            score = score + 2 * f.shape[-1] * averaging.log_det * len(rows) / f.shape[-2]
            better = score > evidence
            evidence, gamma = torch.where(better, score, evidence), torch.where(better, other, gamma)
            level = torch.where(better, finer if other else rough, level)
        return level, Averaging.of(lattice, free, gamma[..., None, None]) if gamma.any() else None

    @torch.no_grad()
    def _likeliest(
        self,
        X: Float[Tensor, "*b M R d"],
        f: Float[Tensor, "*b M d"],
        power: Float[Tensor, "*b 1 1"],
        rows: Int[Tensor, " some"],
        levels: Sequence[Float[Tensor, "*b"]],
    ) -> tuple[Float[Tensor, "*b"], Float[Tensor, "*b"]]:
        """The relative noise with the largest evidence, by the rows of some nodes, and twice its log evidence."""
        scores = []
        for level in tracked(levels):
            error = power * (self.prior.nugget_variance() + level[..., None, None].square())
            regression = self._regress(X[..., rows, :, :], f[..., rows, :], error)
            scores.append(-(regression.misfit + regression.log_det)[0].sum(dim=-1))
        best, index = torch.stack(scores).max(dim=0)
        return torch.stack(list(levels)).gather(0, index[None])[0], best


def _levels(power: Float[Tensor, "*b 1 1"]) -> list[Float[Tensor, "*b"]]:
    return [torch.full_like(power[..., 0, 0], level) for level in NOISE_LEVELS]


def _some(nodes: Bool[Tensor, " M"]) -> Int[Tensor, " some"]:
    """Those that judge the noise."""
    chosen = nodes.nonzero()[:, 0]
    return chosen[:: max(1, len(chosen) // NOISE_ESTIMATION_ROWS)]


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
