"""What kernels look like: K = Φ (ω z) with learned features Φ of position and several sets of weights ω."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.grids import Grid

LENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 100.0)
"""Length scales, as shares of the domain, of the monotone functions that warps are mixed from."""

KNOTS = 13

USED = (56, 40)
"""Wide and near cosines that discovery uses. Of the shipped model the weights of the others are so small that errors on
systems left out of training change by less than 1 %. Trained with so few, it would find kernels between those of
training worse."""

KINDS = (
    (0.0, -2.0, 4.0, 2.0, 0.0),
    (-2.0, 0.0, 4.0, 2.0, 0.0),
    (0.0, 0.0, 8.0, 1.5, -1.0),
    (-1.0, -1.0, 3.0, 2.5, 1.0),
)
"""Where components start: log weights of the wide and the near cosines, frequency and decay of their spectra, and log
weight of the free features."""

SMOOTH = (0.0, -2.0, 6.0, 10.0, -6.0)
"""The same of a kind that is not learned: smooth kernels, for data so noisy that little else can be told. Chosen on
kernels of families that no training or test system belongs to."""

WHITE = 0.003
"""The unexplained error that training starts from. Left free, it would shrink until kernels fit quadrature errors."""


@dataclass(frozen=True)
class PosteriorOptions:
    """Size of the learned prior.

    Attributes:
        wide: cosine features that span the domain, in training; of them, discovery uses those below USED.
        near: cosine features crowded at its lower end, where radial kernels are steep; the same.
        free: features given by a small network.
        components: kinds of kernels, each with its own weights on the features.
    """

    wide: int = 104
    near: int = 64
    free: int = 40
    components: int = 4


def saturations(t: Float[Tensor, " N"]) -> Float[Tensor, "N L"]:
    """Monotone functions from 0 at t = 0 to 1 at t = 1, steep at 0 for short lengths."""
    lengths = torch.tensor(LENGTHS, dtype=t.dtype, device=t.device)
    return torch.expm1(-t[:, None] / lengths) / torch.expm1(-1 / lengths)


class PriorOnGrid(NamedTuple):
    """The prior on one grid: features Φ, also as rows in single precision and as rows with quadrature weights, and of
    every component its weights ω, log odds, variance of K, and variance of a white error of f. The last component is
    the smooth one.
    """

    phi: Float[Tensor, "N R"]
    rows: Float[Tensor, "R N"]
    weighted: Float[Tensor, "R N"]
    omega: Float[Tensor, "K R"]
    odds: Float[Tensor, " K"]
    variance: Float[Tensor, "K N"]
    white: Float[Tensor, " K"]


class LearnedPrior(nn.Module):
    """K(y) = Σ_r Φ_r(y) ω_qr z_r, z ~ N(0, α), for a component q and an amplitude α that the context decides.

    Φ: cosines in two learned warps of the domain, under learned envelopes, and a small network. ω: a Matérn-like
    spectrum on each set of cosines and free weights on the network's features.
    """

    knots: Tensor
    amplitude_start: Tensor
    kappa_start: Tensor
    nu_start: Tensor
    free_start: Tensor

    def __init__(self, options: PosteriorOptions) -> None:
        super().__init__()
        self.options = options
        Q, hidden = options.components, 64
        self.register_buffer("knots", torch.linspace(0, 1, KNOTS), persistent=False)
        self.envelope = nn.Parameter(torch.stack([0 * self.knots, -5 * self.knots, 0 * self.knots]))
        self.warp = nn.Parameter(torch.tensor([[-1.0, 0, 0.5, 1, 1, 1], [1.0, 2, 2, 1, 0, -1]]))
        self.frequency = nn.Parameter(torch.rand(hidden) * 90)
        self.phase = nn.Parameter(torch.rand(hidden) * 2 * math.pi)
        self.edge = nn.Parameter(torch.tensor([0.9, math.log(0.003)]))
        self.network = nn.Sequential(
            nn.Linear(hidden + len(LENGTHS) + 2, hidden), nn.Tanh(), nn.Linear(hidden, options.free)
        )
        kinds = torch.tensor(KINDS).repeat(Q // len(KINDS) + 1, 1)[:Q]
        self.register_buffer("amplitude_start", kinds[:, :2], persistent=False)
        self.register_buffer("kappa_start", kinds[:, 2, None].log().repeat(1, 2), persistent=False)
        self.register_buffer("nu_start", kinds[:, 3, None].log().repeat(1, 2), persistent=False)
        self.register_buffer("free_start", kinds[:, 4, None], persistent=False)
        # Deviations from the start, which training pulls back to zero: too little data for more.
        self.amplitude, self.kappa, self.nu = (nn.Parameter(torch.zeros(Q, 2)) for _ in range(3))
        self.free_weights = nn.Parameter(torch.zeros(Q, options.free))
        self.white = nn.Parameter(torch.zeros(Q))
        self.log_odds = nn.Parameter(torch.zeros(Q))
        self.last: _Kept | None = None

    def on_grid(self, y: Grid, low: float, high: float, most: tuple[int, int]) -> PriorOnGrid:
        """On radii, say, from low to high, with at most so many wide and near cosines.

        Without gradients the last grid's is kept: most contexts share one.
        """
        counts = (min(self.options.wide, most[0]), min(self.options.near, most[1]))
        if torch.is_grad_enabled():
            return self._on_grid(y, low, high, counts)
        parameters = torch.cat([p.flatten() for p in self.parameters()])
        last = self.last
        if last is None or not last.is_of(y, parameters, (low, high, *counts)):
            prior = self._on_grid(y, low, high, counts)
            self.last = last = _Kept(y.clone(), parameters, (low, high, *counts), prior)
        return last.prior

    def _on_grid(self, y: Grid, low: float, high: float, counts: tuple[int, int]) -> PriorOnGrid:
        t = ((y.points[:, 0] - low) / (high - low)).to(self.white)
        phi, omega = self.features(t, counts), self.weights(counts)
        weighted = (y.value_weights.to(phi)[:, None] * phi).mT.contiguous()
        variance = omega.square() @ phi.square().mT
        odds = self.log_odds.log_softmax(dim=0)
        odds, white = (torch.cat([v, v.mean(dim=0, keepdim=True)]) for v in (odds, self.white_variance()))
        return PriorOnGrid(phi, phi.float().mT.contiguous(), weighted, omega, odds, variance, white)

    def features(self, t: Float[Tensor, " N"], counts: tuple[int, int]) -> Float[Tensor, "N R"]:
        """Φ at positions t in [0, 1], with so many wide and near cosines."""
        s = saturations(t)
        place = 0.5 * (s[:, 3] + s[:, 5])
        hats = torch.softmax(-72 * (place[:, None] - self.knots) ** 2, dim=1)
        envelopes = torch.exp(hats @ self.envelope.mT)
        parts = []
        for i, count in enumerate(counts):
            warped = s @ torch.softmax(self.warp[i], dim=0)
            waves = torch.arange(count, dtype=t.dtype, device=t.device)
            parts.append(envelopes[:, i, None] * torch.cos(math.pi * waves * warped[:, None]))
        inside = torch.sigmoid((self.edge[0] - t) / self.edge[1].exp())
        inputs = [torch.sin(t[:, None] * self.frequency + self.phase), 2 * s - 1]
        inputs += [inside[:, None], (inside * (1 - t))[:, None]]
        parts.append(envelopes[:, 2, None] * self.network(torch.cat(inputs, dim=1)) / math.sqrt(self.options.free))
        return torch.cat(parts, dim=1)

    def weights(self, counts: tuple[int, int]) -> Float[Tensor, "K R"]:
        """ω of every component, and of the smooth one."""
        smooth = torch.tensor(SMOOTH).to(self.white)
        amplitude = torch.cat([self.amplitude_start + self.amplitude, smooth[None, :2]])
        kappas = torch.cat([(self.kappa_start + self.kappa).exp(), smooth[None, [2, 2]]])
        nus = torch.cat([(self.nu_start + self.nu).exp(), smooth[None, [3, 3]]])
        free = torch.cat([self.free_start + self.free_weights, smooth[None, 4:].expand(1, self.options.free)])
        parts = []
        for i, count in enumerate(counts):
            kappa, nu = kappas[:, i, None], nus[:, i, None]
            waves = torch.arange(count, dtype=kappa.dtype, device=kappa.device)
            log = -0.5 * nu * torch.log1p((waves / kappa) ** 2)
            log = log - 0.5 * torch.logsumexp(2 * log, dim=1, keepdim=True)
            parts.append(log + amplitude[:, i, None])
        return torch.cat([*parts, free], dim=1).exp()

    def white_variance(self) -> Float[Tensor, " Q"]:
        """Variance of an error of f that no kernel explains, in units of the amplitude."""
        return (2 * (math.log(WHITE) + self.white)).exp()

    def deviation(self) -> Tensor:
        """How far the components have moved from their start."""
        parts = (self.amplitude, self.kappa, self.nu, self.white, self.log_odds)
        return torch.stack([p.square().sum() for p in parts]).sum() + self.free_weights.square().mean(dim=1).sum()


class _Kept(NamedTuple):
    """A prior, with the grid, the values of all parameters, the range and the numbers of cosines it was made of."""

    y: Grid
    parameters: Float[Tensor, " P"]
    numbers: tuple[float, ...]
    prior: PriorOnGrid

    def is_of(self, y: Grid, parameters: Float[Tensor, " P"], numbers: tuple[float, ...]) -> bool:
        """Whether these would make it again. By value: fused optimizers change tensors and keep their version."""
        usable = torch.is_inference_mode_enabled() or not self.prior.phi.is_inference()
        then = self.parameters
        alike = self.numbers == numbers and then.dtype == parameters.dtype and then.device == parameters.device
        return usable and alike and self.y.equals(y) and torch.equal(then, parameters)
