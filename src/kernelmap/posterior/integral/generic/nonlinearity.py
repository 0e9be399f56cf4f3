"""Whether responses are linear in u: terms of second and third order have Gram matrices of their own.

With the Gram matrix S of the pairs, of mean diagonal 1, terms of order 2 and 3 in u are Gaussian with S∘S and S∘S∘S:

    F_i ~ N(0, a² (S + τ² 1 1ᵀ + γ² S∘S + γ⁴ S∘S∘S) + σ²)

What a smooth K leaves unexplained is larger for larger u, as terms of higher order are. So linear responses may have a
part of K that is as rough as can be, with the Gram matrix W = Uᵀ diag(w) U of u itself:

    F_i ~ N(0, a² (S + τ² 1 1ᵀ + β² W) + σ²)
"""

from collections.abc import Callable
from math import log

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.grids import Grid
from kernelmap.posterior.integral.generic.bands import Bands
from kernelmap.posterior.integral.generic.evidence import NOISE, log_evidence
from kernelmap.posterior.integral.generic.pairs import Hypothesis, Pairs

GAMMA = (0.01, 0.03, 0.1, 0.3, 1.0)

BETA = (0.0, 0.3, 3.0)
"""None, a part of what is smooth, and most of it."""


def log_odds_of_nonlinearity(
    A: Float[Tensor, "N d"], F: Float[Tensor, "M d"], y: Grid, bands: Bands, likeliest: list[Hypothesis]
) -> float:
    """log p(F | some γ) - log p(F | some β): every band's likeliest hypothesis, amplitudes and noise summed over.

    By as many pairs as the linear part needs at most.
    """
    most = len(A) + 1
    pairs = Pairs.of(A[:, :most], F[:, :most], y, bands)
    s2 = A.new_tensor(NOISE).square()
    grams = {matern: pairs.gram(matern)[0] for matern in {hypothesis.matern for hypothesis in likeliest}}
    w = y.value_weights[:, None]
    W = torch.where(w > 0, pairs.A / w, 0.0).mT @ pairs.A
    W = W / (W.diagonal().mean() or 1.0)

    def evidence(changed: Callable[[Tensor], Tensor]) -> Tensor:
        total = torch.zeros_like(s2)
        for hypothesis in set(likeliest):
            D, P = pairs.decomposed(changed(grams[hypothesis.matern]), hypothesis.tau)
            of = [band for band, other in enumerate(likeliest) if other == hypothesis]
            total += log_evidence(D, pairs.power(P)[of], pairs.rows[of], s2).logsumexp(dim=-1).sum(dim=0)
        return total.logsumexp(dim=0)

    nonlinear = [evidence(lambda S, g=gamma: S + g**2 * S**2 + g**4 * S**3) for gamma in GAMMA]
    linear = [evidence(lambda S, b=beta: S + b**2 * W) for beta in BETA]
    first, second = (torch.stack(found).logsumexp(dim=0) - log(len(found)) for found in (nonlinear, linear))
    return float(first - second)
