"""Errors that go on in time: AR(1) at any times, beside white noise.

Corr(e_j, e_k) = (1 - ν) exp(-|t_j - t_k| / τ) + ν δ_jk          zero between pairs of different runs
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

NUGGETS = (0.01, 0.1, 0.4)
"""Parts ν of the errors' variance that are white, beside those that go on in time."""

TIMES_OF_DECAY = 9
"""Numbers of τ that are tried, from the shortest step to the longest part of the record."""

LONGEST = 1 / 3
"""Of the record: errors that go on longer are a trend."""


class Times(NamedTuple):
    """When every pair was measured, and in which run."""

    t: Float[Tensor, " d"]
    run: Int[Tensor, " d"]

    @property
    def length(self) -> float:
        """From the first time to the last."""
        return float(self.t.max() - self.t.min())


class Correlation(NamedTuple):
    """τ and ν; white noise alone has ν = 1 and τ = 0.

    factor: of the variance of errors and offset, on average over all τ and ν that the pairs leave open, to that here.
    """

    tau: float
    nugget: float
    factor: float = 1.0

    def matrix(self, times: Times, precision: Float[Tensor, " d"] | None = None) -> Float[Tensor, "d d"]:
        """precision: of single measurements, relative to the white part that all have."""
        one = torch.ones_like(times.t)
        uncorrelated = (self.nugget / (one if precision is None else precision)).diag()
        if self.nugget == 1:
            return uncorrelated
        decay = torch.exp(-(times.t[:, None] - times.t).abs() / self.tau)
        return uncorrelated + (1 - self.nugget) * decay * (times.run[:, None] == times.run)


WHITE_NOISE = Correlation(0.0, 1.0)


def hypotheses(times: Times) -> dict[Correlation, float]:
    """White noise, and all τ and ν, with their log prior probabilities: white or not is as likely before."""
    steps = times.t.sort().values.diff()
    steps = steps[steps > 0]
    if not len(steps) or not times.length > 0:
        return {WHITE_NOISE: 0.0}
    shortest = float(steps.median())
    longest = max(LONGEST * times.length, 1.5 * shortest)
    taus = torch.linspace(math.log(shortest), math.log(longest), TIMES_OF_DECAY, dtype=torch.float64).exp().tolist()
    tried = [Correlation(tau, nugget) for tau in taus for nugget in NUGGETS]
    return {WHITE_NOISE: math.log(0.5)} | dict.fromkeys(tried, math.log(0.5 / len(tried)))
