"""Single huge values of u: pulses, which f follows, or mistakes, which it does not."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.metrics import exploration_measure
from kernelmap.discovery.check import FEWEST
from kernelmap.discovery.identifiability import expected_error
from kernelmap.maps import ProbabilisticMap

ISOLATED = 0.3
"""Of the largest value of all inputs, that a single one stands above both its neighbours. A huge u(x) makes twice the
token at x that it makes elsewhere."""

PAIRS_AT_ONCE = 200


@dataclass(frozen=True)
class Spikes:
    """Pairs with values of u far above all others.

    rms_standardised_residual: of their responses from what the other pairs say.
    expected_error: of the kernel from the other pairs.
    """

    pairs: list[int]
    rms_standardised_residual: float
    expected_error: float


def spiked(context: Context) -> Bool[Tensor, " d"]:
    """Pairs with one point that stands above both its neighbours, or all of whose points are as large."""
    least = ISOLATED * torch.linalg.vector_norm(context.U, torch.inf)
    isolated, large = [], []
    for U in context.U.split(PAIRS_AT_ONCE, dim=1):
        before, after = U[1:-1] - U[:-2], U[1:-1] - U[2:]
        above = torch.minimum(before.abs(), after.abs()) * (before.sign() == after.sign())
        isolated.append((above > least).any(dim=0))
        large.append((U.abs() > least).any(dim=0))
    found = torch.cat(isolated)
    return torch.cat(large) if found.any() else found


def check_spikes(model: ProbabilisticMap, context: Context) -> Spikes | None:
    """What the other pairs say of those with spikes; None without them, or where too few are left."""
    if context.y.dim != 1 or context.y.components > 1 or len(context.y.points) < 3:
        return None
    found = spiked(context)
    if not found.any() or int((~found).sum()) < FEWEST:
        return None
    suspects, rest = context.select(found.nonzero()[:, 0]), context.select((~found).nonzero()[:, 0])
    with torch.no_grad():
        posterior = model.posterior(rest)
        mean, std = posterior.predict_at(suspects.U, suspects.places)
    rms = float(((suspects.F - mean) / std).square().mean().sqrt())
    expected = expected_error(posterior, exploration_measure(rest.U.mT, rest.y))
    return Spikes(found.nonzero()[:, 0].tolist(), rms, expected)
