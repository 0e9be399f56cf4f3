"""Whether responses are linear in u: terms of second and third order have Gram matrices of their own.

With the Gram matrix S of the pairs, of mean diagonal 1, terms of order 2 and 3 in u are Gaussian with S∘S and S∘S∘S:

    F_i ~ N(0, a² (S + τ² 1 1ᵀ + γ² S∘S + γ⁴ S∘S∘S) + σ²)
"""

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.grids import Grid
from kernelmap.posterior.integral.generic.bands import Bands
from kernelmap.posterior.integral.generic.evidence import NOISE, log_evidence
from kernelmap.posterior.integral.generic.pairs import Hypothesis, Pairs

GAMMA = (0.01, 0.03, 0.1, 0.3, 1.0)


def log_odds_of_nonlinearity(
    A: Float[Tensor, "N d"], F: Float[Tensor, "M d"], y: Grid, bands: Bands, likeliest: list[Hypothesis]
) -> float:
    """log p(F | some γ) - log p(F | γ = 0): every band's likeliest hypothesis, amplitudes and noise summed over.

    By as many pairs as the linear part needs at most.
    """
    most = len(A) + 1
    pairs = Pairs.of(A[:, :most], F[:, :most], y, bands)
    s2 = A.new_tensor(NOISE).square()
    grams = {matern: pairs.gram(matern)[0] for matern in {hypothesis.matern for hypothesis in likeliest}}

    def evidence(gamma: float) -> Tensor:
        total = torch.zeros_like(s2)
        for hypothesis in set(likeliest):
            S = grams[hypothesis.matern]
            D, P = pairs.decomposed(S + gamma**2 * S**2 + gamma**4 * S**3, hypothesis.tau)
            of = [band for band, other in enumerate(likeliest) if other == hypothesis]
            total += log_evidence(D, pairs.power(P)[of], pairs.rows[of], s2).logsumexp(dim=-1).sum(dim=0)
        return total.logsumexp(dim=0)

    nonlinear = torch.stack([evidence(gamma) for gamma in GAMMA])
    return float(nonlinear.logsumexp(dim=0) - torch.tensor(len(GAMMA)).log() - evidence(0.0))
