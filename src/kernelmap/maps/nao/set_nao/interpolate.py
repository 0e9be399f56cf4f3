"""A head that fits what the others leave of the context, with the least effect on other inputs.

Where systems are not quite linear, the best linear answer does not fit its context. Of all T with Tᵀ diag(h) U = I,
through which a residual E is fitted by K + E Tᵀ, the one that responds least to other inputs u is

    T = Σ⁻¹ U (Uᵀ Σ⁻¹ U)⁻¹ ,   which makes the mean of |Tᵀ diag(h) u|² least: tr (Uᵀ Σ⁻¹ U)⁻¹ ,  Σ the covariance of u

White inputs of n coordinates have d / (n - d - 1): the rougher the inputs, the less the fit costs.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.core.grids import Grid
from kernelmap.maps.nao.set_nao.modes import Modes
from kernelmap.maps.nao.set_nao.newton_schulz import START, inverse_gram, layer_coefficients
from kernelmap.maps.nao.set_nao.tokens import Factors

OCTAVE = 0.3
"""Width, in log(1 + |k|), over which the power of waves is averaged."""

LEAST = 1e-6
"""Power of a wave, relative to the mean, below which it is not amplified further."""

RIDGE = 1e-8
"""Of the least squares, for grids of fewer points than waves."""


class Interpolation(nn.Module):
    """T for inputs whose covariance is diagonal in waves, Σ = Ψ diag(p) Ψᵀ, with the context's own power p."""

    def __init__(self, modes: Modes, layers: int) -> None:
        super().__init__()
        self.modes = modes
        position = (1 + modes.frequencies.double()).log()
        near = (-0.5 * ((position[:, None] - position) / OCTAVE).square()).exp()
        self.register_buffer("average", near / near.sum(dim=1, keepdim=True), persistent=False)
        start = torch.tensor([START] * layers, dtype=torch.float64).log()
        self.register_buffer("coefficients", layer_coefficients(start), persistent=False)

    def forward(self, U: Float[Tensor, "*#b N d"], E: Float[Tensor, "*b M d"], y: Grid) -> Factors:
        """E Tᵀ = E q(S) Aᵀ diag(p)⁻¹ C ,   A = C diag(h) U ,   S = Aᵀ diag(p)⁻¹ A ,   q(S) -> S⁻¹."""
        C, h = self._coefficients(y).to(U), self.modes.weights(y).to(U)
        A = C @ (h[:, None] * U)
        p = self.get_buffer("average").to(U) @ A.square().mean(dim=-1, keepdim=True)
        p = p + LEAST * p.mean(dim=-2, keepdim=True)
        scaled = A / torch.where(p > 0, p, 1)
        S = A.mT @ scaled
        trace = S.diagonal(dim1=-2, dim2=-1).sum(dim=-1)[..., None, None]
        trace = torch.where(trace > 0, trace, 1)
        q = inverse_gram(S / trace, self.get_buffer("coefficients").to(U)) / trace
        return Factors(E @ q, scaled.mT @ C)

    @torch.no_grad()
    def _coefficients(self, y: Grid) -> Float[Tensor, "R N"]:
        """C with C diag(h) u the coefficients of u in the waves, by least squares: C = (Ψᵀ diag(h) Ψ)⁻¹ Ψᵀ.

        Quadrature alone would let a strong wave leak into weak ones, and drown these.
        """
        psi = self.modes.of_component(y)
        gram = psi.mT @ (self.modes.weights(y)[: len(psi), None] * psi)
        gram.diagonal().add_(RIDGE)
        of_component = torch.cholesky_solve(psi.mT, torch.linalg.cholesky(gram))
        return torch.block_diag(*[of_component] * self.modes.domain.components)
