"""A kernel without an error bar of its own, and the split-conformal band of its predictions.

The kernel predicts pairs that it was not found from. Of n scores s_j = |f_j - K u_j| / a_j let q be the k-th smallest,
k = ⌈(n + 1) 0.95⌉. If the new pair is exchangeable with them, its response lies within K u ± q a with probability 0.95
or more, whatever the map, the noise and the law of the inputs (Papadopoulos et al., 2002; Lei et al., 2018). It takes
n ≥ 19 pairs; with fewer the band is infinite.

The size a_j of a pair is ((|u_j|² + mean |u|²) / 2)^½: errors of the kernel grow with u, errors of measurement do not.
"""

from dataclasses import dataclass
from math import ceil, inf

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.grids import Grid
from kernelmap.core.kernel import Kernel
from kernelmap.core.posterior import ESTIMATES, KernelEstimate, Prediction

LEVEL, WITHIN = 0.95, 1.96
"""Level of the band, and how many standard deviations it is made of."""

FEWEST_PAIRS = 19
"""With fewer no band has this level."""


@ESTIMATES.register("conformal")
@dataclass(frozen=True)
class ConformalEstimate(KernelEstimate):
    """A kernel, with K u ± `quantile` a for its predictions; `power` is the mean |u|² of the pairs kept back."""

    found: Kernel
    residual: Float[Tensor, ""]
    quantile: Float[Tensor, "M 1"]
    power: Float[Tensor, ""]
    context: Context

    @property
    def mean(self) -> Float[Tensor, "M N"]:
        return self.found.values

    @property
    def kernel(self) -> Kernel:
        return self.found

    @property
    def relative_residual(self) -> Float[Tensor, ""]:
        """Of the pairs that the kernel was found from."""
        return self.residual

    def predict(self, U: Float[Tensor, "N n"]) -> Prediction:
        """The responses to new inputs; ± 1.96 std is the conformal band."""
        return Prediction(self.found.apply(U), self.quantile * sizes(U, self.power, self.found.y) / WITHIN)

    def state(self) -> dict[str, Tensor]:
        return {"residual": self.residual, "quantile": self.quantile, "power": self.power}

    @classmethod
    def restored(cls, state: dict[str, Tensor], kernel: Kernel, d: int) -> "ConformalEstimate":
        return cls(kernel, **state, context=Context.without_pairs(kernel.y, kernel.x, d))


def conformal(kernel: Kernel, used: Context, predictor: Kernel, heldout: Context | None) -> ConformalEstimate:
    """The kernel found from the pairs `used`, with the band that `predictor` has on the pairs kept back."""
    residual = (kernel.apply(used.U) - used.F).square().mean().sqrt() / used.F.square().mean().sqrt()
    if heldout is None:
        none = torch.full_like(used.F[:, :1], inf)
        return ConformalEstimate(kernel, residual, none, torch.ones_like(residual), used)
    power = squared_sizes(heldout.U, heldout.y).mean()
    scores = (predictor.apply(heldout.U) - heldout.F).abs() / sizes(heldout.U, power, heldout.y)
    return ConformalEstimate(kernel, residual, conformal_quantile(scores), power, used)


def conformal_quantile(scores: Float[Tensor, "M n"]) -> Float[Tensor, "M 1"]:
    """The ⌈(n + 1) 0.95⌉-th smallest score of every output; infinite where there are too few."""
    n = scores.shape[-1]
    k = ceil((n + 1) * LEVEL - 1e-9)
    if k > n:
        return torch.full_like(scores[:, :1], inf)
    return scores.kthvalue(k, dim=-1, keepdim=True).values


def sizes(U: Float[Tensor, "N n"], power: Float[Tensor, ""], y: Grid) -> Float[Tensor, " n"]:
    """a of every input."""
    return ((squared_sizes(U, y) + power) / 2).sqrt()


def squared_sizes(U: Float[Tensor, "N n"], y: Grid) -> Float[Tensor, " n"]:
    """|u|² averaged over y."""
    weights = y.value_weights.to(U)
    return weights @ U.square() / weights.sum()
