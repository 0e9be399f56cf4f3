"""The evidence of hypotheses about a band of x: smoothness and length in y, size of h, amplitude and noise.

    log p(F_i, i in band | U) = -½ Σ_j [ q_j / v_j + m log v_j ] ,  v_j = σ² (1 + ρ² D_j) ,  q_j = Σ_i (F P)_ij²

for m functions of x in the band.

Given the noise σ, which is that of all bands, they are independent; ρ = a / σ, and all else, is summed over grids.
"""

from math import log, log2

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.grids import Grid
from kernelmap.posterior.integral.generic.matern import Matern, extent
from kernelmap.posterior.integral.generic.pairs import Hypothesis, Pairs

LONGEST = 2
"""Octaves above the extent of y: longer lengths say the same, in other amplitudes."""

TAU = (0.0, 0.3, 1.0, 3.0)
"""Sizes of h relative to the prior's responses; no h has half the odds."""

RATIO = tuple(2.0 ** (k / 2) for k in range(-6, 55))
"""Amplitude to noise, from what cannot be seen to the largest amplitude at the least noise."""

LARGEST = 128.0
"""Amplitude relative to the root mean square of f, which one band of many may have alone."""

NOISE = tuple(2.0 ** (k / 2) for k in range(-40, 3))
"""Relative to the root mean square of f: from what sums in double precision leave to a signal that is all noise."""


def hypotheses(y: Grid, smoothness: tuple[int, ...], steps: int, taus: tuple[float, ...]) -> list[Hypothesis]:
    """Lengths from one step of the grid on, so many to an octave."""
    shortest = -log2(max(len(y.points) ** (1 / y.dim) - 1, 1))
    count = int(steps * (LONGEST - shortest)) + 1
    lengths = [extent(y) * 2 ** (LONGEST - k / steps) for k in range(count)]
    return [Hypothesis(Matern(p, length), tau) for p in smoothness for length in lengths for tau in taus]


def log_odds(hypothesis: Hypothesis) -> float:
    return log(0.5) if hypothesis.tau == 0 else log(0.5 / (len(TAU) - 1))


def table(pairs: Pairs, tried: list[Hypothesis]) -> Float[Tensor, "bands H S"]:
    """The evidence of every hypothesis for every band and noise level, summed over amplitudes."""
    s2, found = pairs.A.new_tensor(NOISE).square(), []
    grams = {matern: pairs.gram(matern)[0] for matern in dict.fromkeys(h.matern for h in tried)}
    for hypothesis in tried:
        D, P = pairs.decomposed(grams[hypothesis.matern], hypothesis.tau)
        evidence = log_evidence(D, pairs.power(P), pairs.rows, s2)
        found.append(evidence.logsumexp(dim=-1) + log_odds(hypothesis))
    noise = pairs.rest[:, None] / s2 + pairs.rest_count * pairs.rows[:, None] * s2.log()
    return torch.stack(found, dim=1) - 0.5 * noise[:, None]


def log_evidence(
    D: Float[Tensor, " r"], q: Float[Tensor, "bands r"], rows: Float[Tensor, " bands"], s2: Float[Tensor, " S"]
) -> Float[Tensor, "bands S R"]:
    """For every noise level and every ratio of amplitude to noise."""
    ratio = D.new_tensor(RATIO)
    relative = 1 + ratio.square()[:, None] * D
    misfit = (q @ relative.reciprocal().mT)[:, None] / s2[:, None]
    log_det = relative.log().sum(dim=-1) + len(D) * s2.log()[:, None]
    found = -0.5 * (misfit + rows[:, None, None] * log_det)
    return found.where(ratio * s2.sqrt()[:, None] <= LARGEST, -torch.inf)


def likeliest_amplitude(pairs: Pairs, hypothesis: Hypothesis, band: int, s2: float) -> float:
    """a² of one band."""
    D, P = pairs.decomposed(pairs.gram(hypothesis.matern)[0], hypothesis.tau)
    found = log_evidence(D, pairs.power(P)[[band]], pairs.rows[[band]], D.new_tensor([s2]))
    return RATIO[int(found.argmax())] ** 2 * s2
