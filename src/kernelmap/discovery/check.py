"""The check: some pairs are kept back, a kernel is found from the rest, and the kept ones are predicted."""

from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context, distinct_inputs
from kernelmap.core.metrics import operator_error
from kernelmap.core.posterior import KernelPosterior
from kernelmap.estimators import Estimate, dartr
from kernelmap.maps import ProbabilisticMap

HELDOUT = 0.2
"""Fraction of the pairs that is kept back."""

CLASSICAL_PAIRS = 2000
"""The classical estimate is a comparison: from more pairs its cost grows, and its answer hardly changes."""

FEWEST = 20
"""With fewer different inputs none is kept back: the kernel needs them all."""


@dataclass(frozen=True)
class Check:
    """Pairs that were kept back, and how well they were predicted.

    mean, std: the predictions.
    error: their relative error.
    coverage: the fraction of values inside their 95 % interval.
    rms_standardised_residual: root mean square of error over standard deviation, 1 for a calibrated model.
    classical_error: relative error of the classical estimate on the same pairs.
    """

    heldout: Context
    mean: Float[Tensor, "M n"]
    std: Float[Tensor, "M n"]
    error: float
    coverage: float
    rms_standardised_residual: float
    classical_error: float

    def summary(self) -> dict[str, Any]:
        """The numbers, for a JSON file; what is not a number is None."""
        keys = ("error", "coverage", "rms_standardised_residual", "classical_error")
        values = {key: getattr(self, key) for key in keys}
        return {"pairs": self.heldout.d} | {key: v if isfinite(v) else None for key, v in values.items()}


def check_heldout(model: ProbabilisticMap, context: Context) -> Check | None:
    """Keep one input in five back with all its pairs, and predict them; None where there are too few inputs."""
    group = distinct_inputs(context.U)
    inputs = int(group.max()) + 1
    if inputs < FEWEST:
        return None
    order = torch.randperm(inputs, generator=torch.Generator().manual_seed(0)).to(context.F.device)
    kept = torch.isin(group, order[: round(HELDOUT * inputs)])
    heldout, rest = context.select(kept.nonzero()[:, 0]), context.select((~kept).nonzero()[:, 0])
    with torch.no_grad():
        posterior = model.posterior(rest)
        mean, std = posterior.predict_at(heldout.U, heldout.places)
        besides = posterior.beside_kernel(heldout.d, heldout.places)
        of_rest = posterior.beside_kernel(rest.d, rest.places)
    # Constrained values, which never respond, are predicted exactly and without doubt.
    residual = torch.where(mean == heldout.F, 0.0, (mean - heldout.F) / std)
    return Check(
        heldout,
        mean,
        std,
        error=float(operator_error(mean - besides, heldout.F - besides, context.x)),
        coverage=float((residual.abs() <= 1.96).double().mean()),
        rms_standardised_residual=float(residual.square().mean().sqrt()),
        classical_error=float(
            operator_error(classical(rest, of_rest).kernel.apply(heldout.U), heldout.F - besides, context.x)
        ),
    )


def classical(context: Context, besides: Float[Tensor, "M d"]) -> Estimate:
    """The classical estimate, which knows no offset, of what f has without it."""
    return dartr(replace(context, F=context.F - besides).thinned(CLASSICAL_PAIRS))


class Residual(NamedTuple):
    """A pair, the largest of its standardised residuals (f - E[f]) / std, and their root mean square."""

    pair: int
    size: float
    rms: float


def largest_residuals(posterior: KernelPosterior, count: int = 5) -> tuple[Residual, ...]:
    """Pairs of the context that the posterior explains worst, worst first."""
    context = posterior.context
    mean, std = posterior.predict_at(context.U, context.places)
    standardised = torch.where(mean == context.F, 0.0, (context.F - mean) / std)
    sizes = standardised.gather(-2, standardised.abs().argmax(dim=-2, keepdim=True))[0]
    rms = standardised.square().mean(dim=-2).sqrt()
    order = sizes.abs().argsort(descending=True)[:count]
    return tuple(Residual(int(pair), float(sizes[pair]), float(rms[pair])) for pair in order)
