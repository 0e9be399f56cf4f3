"""The mean kernel of the order-free NAO, and the spectra of smooth functions."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.core.domain import ContextShape
from kernelmap.core.grids import Grid
from kernelmap.maps.nao.set_nao.modes import Basis, Modes

KAPPA, NU = 3.0, 1.5
"""Where spectra start to fall, and how fast, before training."""

FINE = 1.5
"""The spectrum of the mean goes on to so many times more waves than are coupled."""


class Spectrum(nn.Module):
    """ω_k = (1 + (|k| / κ)²)^(-ν/2), with κ and ν learned; 1 for the one function of a single point."""

    def __init__(self, modes: Modes) -> None:
        super().__init__()
        self.register_buffer("frequencies", modes.frequencies, persistent=False)
        self.flat = modes.domain.is_point
        if not self.flat:
            self.log_kappa, self.log_nu = (nn.Parameter(torch.tensor(value).log()) for value in (KAPPA, NU))

    def forward(self) -> Float[Tensor, " R"]:
        k = self.get_buffer("frequencies")
        if self.flat:
            return torch.ones_like(k)
        return (1 + (k / self.log_kappa.exp()).square()) ** (-self.log_nu.exp() / 2)


class MeanKernel(nn.Module):
    """m(x, y) = Σ_ij ψ_i(x) √ω_i (I + B)_ij √ω_j ψ_j(y): smooth, and before training translation-invariant.

    For a single output point I is a row of ones: m then starts as a bump at the origin. B couples the first `waves`
    waves only; beyond them the spectrum ω goes on. The size of m means nothing: maps set it for each context.
    """

    def __init__(self, shape: ContextShape, basis: Basis, waves: int) -> None:
        super().__init__()
        self.x, self.y = (Modes(domain, basis, round(FINE * waves)) for domain in (shape.x, shape.y))
        self.spectra = nn.ModuleList([Spectrum(self.x), Spectrum(self.y)])
        rows, columns = (modes.block(waves) for modes in (self.x, self.y))
        self.register_buffer("rows", rows[:, None], persistent=False)
        self.register_buffer("columns", columns, persistent=False)
        self.B = nn.Parameter(torch.zeros(len(rows), len(columns)))

    def factors(self, x: Grid, y: Grid) -> tuple[Float[Tensor, "M R"], Float[Tensor, "R N"]]:
        """m = left right."""
        omega_x, omega_y = (spectrum().sqrt() for spectrum in self.spectra)
        start = torch.eye if min(self.x.count, self.y.count) > 1 else torch.ones
        coupled = start(self.x.count, self.y.count, dtype=self.B.dtype, device=self.B.device).index_put(
            (self.get_buffer("rows"), self.get_buffer("columns")), self.B, accumulate=True
        )
        return self.x(x).to(self.B) @ (omega_x[:, None] * coupled * omega_y), self.y(y).to(self.B).mT

    def deviation(self) -> Tensor:
        """Squared distance from where it started."""
        return self.B.square().sum()
