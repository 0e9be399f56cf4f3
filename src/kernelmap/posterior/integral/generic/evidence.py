"""The evidence of hypotheses about a band of x: smoothness and length in y, size of h, amplitude and noise.

    log p(F_i, i in band | U) = -½ Σ_j [ q_j / (a² D_j + σ²) + m log(a² D_j + σ²) ] ,   q_j = Σ_i Q_ij² ,  m rows

Given the noise σ, which is that of all bands, they are independent; a, and all else, is summed over grids.
"""

from dataclasses import dataclass
from math import log, log2
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.grids import Grid
from kernelmap.posterior.integral.generic.bands import Bands
from kernelmap.posterior.integral.generic.component import Component
from kernelmap.posterior.integral.generic.matern import Matern, extent

SMOOTHNESS = (0, 1, 2, 4)
"""Derivatives of Matérn functions: kernels that jump, have a kink, or are smooth."""

LONGEST = 2
"""Octaves above the extent of y: longer lengths say the same, in other amplitudes."""

TAU = (0.0, 0.3, 1.0, 3.0)
"""Sizes of h relative to the prior's responses; no h has half the odds."""

AMPLITUDE = tuple(2.0 ** (k / 2) for k in range(-50, 21))
NOISE = tuple(2.0 ** (k / 2) for k in range(-46, 3))
"""Relative to the root mean square of f: from what double precision leaves to a signal that is all noise."""


class Hypothesis(NamedTuple):
    matern: Matern
    tau: float

    @property
    def log_odds(self) -> float:
        return log(0.5) if self.tau == 0 else log(0.5 / (len(TAU) - 1))


@dataclass(frozen=True)
class Pairs:
    """A = w U and G = Vᵀ F, both in units of their root mean squares."""

    A: Float[Tensor, "N d"]
    G: Float[Tensor, "M d"]
    y: Grid
    bands: Bands

    def gram(self, matern: Matern) -> tuple[Float[Tensor, "d d"], float]:
        """S / t, and t."""
        S = self.A.mT @ matern.times(self.y, self.A)
        t = float(S.diagonal().mean()) or 1.0
        return S / t, t

    def power(self, P: Float[Tensor, "d d"]) -> Float[Tensor, "bands d"]:
        """q_j of every band."""
        Q = (self.G @ P).square()
        return torch.stack([Q[members].sum(dim=0) for members in self.bands.members])

    @property
    def rows(self) -> Float[Tensor, " bands"]:
        return self.A.new_tensor([members.stop - members.start for members in self.bands.members])

    def component(self, hypothesis: Hypothesis, band: int, s2: float) -> Component:
        """Conditioned, with the likeliest amplitude."""
        S, t = self.gram(hypothesis.matern)
        D, P = eigh(S + hypothesis.tau**2)
        q, m = self.power(P)[[band]], self.rows[[band]]
        a2 = self.A.new_tensor(AMPLITUDE).square()
        found = log_evidence(D, q, m, a2, q.new_tensor([s2]))[0, :, 0]
        # A function of N values and h have N + 1 directions, however many the pairs are.
        r = min(len(D), len(self.A) + 1)
        return Component(
            W=(self.A @ P)[:, -r:],
            ones=P.sum(dim=0)[-r:],
            Q=(self.G[self.bands.members[band]] @ P)[:, -r:],
            D=D[-r:],
            matern=hypothesis.matern,
            y=self.y,
            t=t,
            tau2=hypothesis.tau**2,
            a2=float(a2[found.argmax()]),
            s2=s2,
        )


def eigh(S: Float[Tensor, "d d"]) -> tuple[Float[Tensor, " d"], Float[Tensor, "d d"]]:
    D, P = torch.linalg.eigh(S)
    return D.clamp(min=0), P


def log_evidence(
    D: Float[Tensor, " d"],
    q: Float[Tensor, "bands d"],
    rows: Float[Tensor, " bands"],
    a2: Float[Tensor, " A"],
    s2: Float[Tensor, " S"],
) -> Float[Tensor, "bands A S"]:
    variance = a2[:, None, None] * D + s2[:, None]
    log_det = variance.log().sum(dim=-1)
    misfit = (q @ variance.reciprocal().flatten(0, 1).mT).unflatten(-1, log_det.shape)
    return -0.5 * (misfit + rows[:, None, None] * log_det)


def hypotheses(y: Grid, steps: int, taus: tuple[float, ...]) -> list[Hypothesis]:
    """Lengths from one step of the grid on, so many to an octave."""
    shortest = -log2(max(len(y.points) ** (1 / y.dim) - 1, 1))
    count = int(steps * (LONGEST - shortest)) + 1
    lengths = [extent(y) * 2 ** (LONGEST - k / steps) for k in range(count)]
    return [Hypothesis(Matern(p, length), tau) for p in SMOOTHNESS for length in lengths for tau in taus]


def table(pairs: Pairs, tried: list[Hypothesis]) -> Float[Tensor, "bands H S"]:
    """The evidence of every hypothesis for every band and noise level, summed over amplitudes."""
    a2, s2 = (pairs.A.new_tensor(levels).square() for levels in (AMPLITUDE, NOISE))
    rows, found = pairs.rows, []
    grams = {matern: pairs.gram(matern)[0] for matern in dict.fromkeys(h.matern for h in tried)}
    for hypothesis in tried:
        D, P = eigh(grams[hypothesis.matern] + hypothesis.tau**2)
        evidence = log_evidence(D, pairs.power(P), rows, a2, s2)
        found.append(evidence.logsumexp(dim=1) + hypothesis.log_odds)
    return torch.stack(found, dim=1)
