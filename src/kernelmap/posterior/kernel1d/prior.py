"""The prior: all that was chosen on systems, from a model's config.json and weights."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.posterior.kernel1d.components import Block, Component, Features, Group, Peak, Spectrum
from kernelmap.posterior.kernel1d.errors import Density
from kernelmap.posterior.kernel1d.pieces import Pieces

LOG_ALPHA = (-12.0, 12.0, 49)
LOG_ETA = (math.log(1e-7), math.log(10.0), 27)
"""First and last knot, and number of knots, of the densities of log α and log η."""


@dataclass(frozen=True)
class Kernel1dOptions:
    """Where learning starts, and what it keeps.

    Attributes:
        cosines: in a block of features.
        warps: q of the warps log(1 + t/q); 0 is t itself.
        rates: of the exponential envelopes exp(-rate t); 0 is none.
        powers: of the singular envelopes t^-power.
        spectra: width and decay of the spectra of smooth and rough kernels.
        floors: of every spectrum.
        bands: centres of the spectra of oscillating kernels.
        band_rates: of their envelopes.
        peak_widths: of peaks, one and a half widths apart from end to end.
        peak_cosines: in a peak.
        peak_spectra: widths of their spectra.
        background: size of what peaks, and kernels that end at an edge, may have elsewhere.
        piece_cosines: in a piece between edges of a kernel with jumps.
        piece_spectra: width and decay of their spectra.
        edges: at most, of a kernel with jumps.
        ratios: of white noise to errors of jumps.
        spread: standard deviation of the log of the size of the errors of jumps.
        pilot_noise: least relative error in the pilot fit.
        least_noise: least relative error ever.
        survivors: components that each plug-in fit takes from the fit before.
        remainders: sizes of what a learned component may have beside the kernels of the systems.
        learned_like: the generic components that these kernels are like; set by learning.
        rounds: of expectation-maximisation.
    """

    cosines: int = 160
    warps: tuple[float, ...] = (0.0, 0.2, 0.03)
    rates: tuple[float, ...] = (0.0, 3.3, 12.0)
    powers: tuple[float, ...] = (0.4, 0.75)
    spectra: tuple[tuple[float, float], ...] = (
        (3, 1.2),
        (3, 2),
        (8, 2),
        (15, 1.5),
        (20, 3),
        (6, 6),
        (12, 10),
        (40, 4),
        (80, 8),
    )
    floors: tuple[float, ...] = (1e-4, 3e-3)
    bands: tuple[float, ...] = (6, 10, 16, 26, 42, 68, 104)
    band_rates: tuple[float, ...] = (0.0, 3.3, 10.0)
    peak_widths: tuple[float, ...] = (0.1, 0.025)
    peak_cosines: int = 24
    peak_spectra: tuple[float, ...] = (3, 10)
    background: float = 0.01
    piece_cosines: int = 8
    piece_spectra: tuple[tuple[float, float], ...] = ((1, 3), (3, 3))
    edges: int = 4
    ratios: tuple[float, ...] = (1e-8, 1e-6, 1e-4, 1e-2, 1.0)
    spread: float = 1.0
    pilot_noise: float = 1e-3
    least_noise: float = 1e-6
    survivors: tuple[int, ...] = (20, 16)
    remainders: tuple[float, ...] = ()
    learned_like: tuple[int, ...] = ()
    rounds: int = 1

    def groups(self) -> tuple[Group, ...]:
        """Generic components: smooth or rough, oscillating, and peaked."""
        envelopes = [{"rate": rate} for rate in self.rates] + [{"power": power} for power in self.powers]
        spectra = [Spectrum(0, width, decay, floor) for width, decay in self.spectra for floor in self.floors]
        bands = [Spectrum(k, max(1.5, k / 6), 3, floor) for floor in self.floors for k in self.bands]
        counts = [math.ceil(1 / (1.5 * width)) for width in self.peak_widths]
        within = [Spectrum(0, width, 4, floor) for width in self.peak_spectra for floor in self.floors]
        groups = (
            Group(tuple(Block(warp, **e) for warp in self.warps for e in envelopes), tuple(spectra), self.cosines),
            Group(tuple(Block(rate=rate) for rate in self.band_rates), tuple(bands), self.cosines),
            *(
                Group(
                    tuple(Peak((i + 0.5) / count, width) for i in range(count)),
                    tuple(within),
                    self.peak_cosines,
                    self.background,
                    alike=True,
                )
                for width, count in zip(self.peak_widths, counts, strict=True)
            ),
        )
        return tuple(group for group in groups if group.blocks and group.spectra)

    def pieces(self) -> Pieces:
        """Kernels with jumps, which may end at the last of them."""
        spectra = tuple(Spectrum(0, width, decay) for width, decay in self.piece_spectra)
        return Pieces(self.piece_cosines, spectra, (1.0, self.background), self.edges)


class Learned(NamedTuple):
    """Components learned from systems: K = Φ_c x, x ~ N(0, M + s² diag(ω_c²)).

    M = mean of E[x xᵀ | pairs] over a family, the systems whose likeliest components have the same features: what was
    found of their kernels and what was not. Beside it a remainder of relative size s like a generic component c. Each
    of the family's likeliest components, all named by `like`, makes one learned component for every s.
    """

    moments: Float[Tensor, "families R R"]
    like: tuple[int, ...]
    sizes: tuple[float, ...]

    def extend(self, generic: Features, first: int) -> Features:
        """The generic components, and these after them, whose odds begin at number `first`."""
        families = sorted({generic.components[index].block for index in self.like})
        blocks, components = [], []
        for index in self.like:
            family, omega, *_ = generic.components[index]
            phi = generic.blocks[family] * omega
            own = self.moments[families.index(family)] / (omega[:, None] * omega)
            own = own * phi.square().sum(dim=1).mean() / ((phi @ own) * phi).sum(dim=1).mean()
            for size in self.sizes:
                components.append(Component(len(blocks), torch.ones_like(omega), first + len(components)))
                blocks.append(phi @ torch.linalg.cholesky(own + size**2 * torch.eye(len(own)).to(own)))
        return generic.extended(blocks, components)


class Prior(NamedTuple):
    """Components with their log odds, and densities of the amplitude α and the noise level η; see the options.

    log_odds: of the generic components, then of kernels with jumps, then of the learned components.
    """

    groups: tuple[Group, ...]
    pieces: Pieces
    learned: Learned | None
    log_odds: Float[Tensor, " K"]
    amplitude: Density
    noise: Density
    spread: float
    ratios: tuple[float, ...]
    survivors: tuple[int, ...]
    pilot_noise: float
    least_noise: float

    def features(self, t: Float[Tensor, " N"], h: float) -> Features:
        """Of all components but those with jumps."""
        generic = Features.of(self.groups, t, h)
        if self.learned is None:
            return generic
        return self.learned.extend(generic, self.first_edge + self.pieces.odds)

    @property
    def first_edge(self) -> int:
        """Number of the first odds of kernels with jumps."""
        return sum(group.odds for group in self.groups)


def starting_prior(options: Kernel1dOptions, device: torch.device) -> Prior:
    """Equal odds for the groups, and for the components of a group; α within e^±4 or so, any noise level."""
    groups, pieces = options.groups(), options.pieces()
    sizes = [part.odds for part in (*groups, pieces) if part.odds]
    odds = torch.cat([torch.full((n,), 1 / (len(sizes) * n), dtype=torch.float64, device=device) for n in sizes])
    alpha, eta = (torch.linspace(*knots, dtype=torch.float64, device=device) for knots in (LOG_ALPHA, LOG_ETA))
    return Prior(
        groups,
        pieces,
        None,
        odds.log(),
        Density(alpha, -(alpha**2) / 8).normalised(),
        Density(eta, torch.zeros_like(eta)).normalised(),
        options.spread,
        tuple(options.ratios),
        tuple(options.survivors),
        options.pilot_noise,
        options.least_noise,
    )
