"""The prior of responses in time: near to one exponential, or anything, with a tail that the pairs must tell.

Of a component whose envelope is exp(-r t) the tail is as good as zero, and its band says so, though few data do. Each
block gets a smooth part on the whole range beside it. And responses of one reservoir, with a memory of its own, are
more than the coarse rates of a general prior can tell: blocks K(t) = exp(-r t) Σ_k cos(π k w(t)) ω_k z_k with the warp
w of the length 1/r and hardly more than the constant, k = 0, of many r.
"""

import math
from dataclasses import replace

import numpy as np
import torch

from kernelmap.posterior.kernel1d.components import Block, Group, Spectrum
from kernelmap.posterior.kernel1d.prior import Prior

TAIL = 1e-3
"""Size of the smooth part, relative to the main part."""

RATES = np.geomspace(1 / 0.6, 50.0, 13).tolist()
"""Those of the simulated world's long tails, √2 apart or less."""

NEARLY_CONSTANT, COSINES = Spectrum(0, 1, 3), 8


def responses_prior(prior: Prior) -> Prior:
    """With the reservoirs as one more group, as likely before as others are on average.

    Learned components are moments of coefficients without a smooth part beside them: their groups stay as they are.
    """
    groups = prior.groups
    if prior.learned is None:
        groups = tuple(group if group.background else replace(group, background=TAIL) for group in groups)
    blocks = tuple(Block(warp=1 / rate, rate=rate) for rate in RATES)
    reservoirs = Group(blocks, (NEARLY_CONSTANT,), COSINES, TAIL, alike=True)
    share = 1 / (len(groups) + 2)
    before, after = (prior.log_odds + math.log(1 - share)).tensor_split([prior.first_edge])
    own = prior.log_odds.new_tensor([math.log(share)])
    return prior._replace(groups=(*groups, reservoirs), log_odds=torch.cat([before, own, after]))
