"""Mixture components: Gaussian priors of a kernel K(t) on [0, 1], made of cosines.

    K(t) = e(t) Σ_k cos(π k w(t)) ω_k z_k ,   z ~ N(0, 1)
    w(t) = m + (1 - 2m) log(1 + t/q) / log(1 + 1/q)  (m + (1 - 2m) t for q = 0)                warp
    e(t) = (t + h)^-p exp(-r t)                                                                envelope
    ω_k² = (1 + ((k - k0) / κ)²)^-ν + φ²                                                       spectrum, floor φ

The margin m leaves the kernel's slope at its ends free, which cosines on the whole period hold at zero.
h is half the grid's first step, so that an integrable singularity (p > 0) has a value at t = 0. Of a peak at c of width
s, w = (t - c) / 6s + 1/2 and e = exp(-((t - c) / s)² / 2), within three widths.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

MARGIN = 0.15
"""Of the period, at each end: more than the length over which the smoothest components are correlated."""


@dataclass(frozen=True)
class Block:
    """A warp q and an envelope: power p, rate r."""

    warp: float = 0.0
    power: float = 0.0
    rate: float = 0.0

    def features(self, t: Float[Tensor, " N"], h: float, count: int) -> Float[Tensor, "N R"]:
        """e(t) cos(π k w(t)) for k < count; of t in [-1, 1], both sides of zero, with w(|t|) mirrored at zero."""
        size = t.abs()
        w = torch.log1p(size / self.warp) / math.log1p(1 / self.warp) if self.warp > 0 else size
        if (t < 0).any():
            w = (1 + t.sign() * w) / 2
        e = (size + h) ** -self.power * torch.exp(-self.rate * size)
        return cosines(MARGIN + (1 - 2 * MARGIN) * w, count) * e[:, None]


@dataclass(frozen=True)
class Peak:
    """An envelope at a centre c in (0, 1) of the range, of width s."""

    centre: float
    width: float

    def features(self, t: Float[Tensor, " N"], h: float, count: int) -> Float[Tensor, "N R"]:
        centre, width = (2 * self.centre - 1, 2 * self.width) if (t < 0).any() else (self.centre, self.width)
        z = (t - centre) / width
        return cosines(z / 6 + 0.5, count) * (torch.exp(-(z**2) / 2) * (z.abs() <= 3))[:, None]


def cosines(w: Float[Tensor, " N"], count: int) -> Float[Tensor, "N R"]:
    """cos(π k w), k < count."""
    return torch.cos(math.pi * w[:, None] * torch.arange(count, dtype=w.dtype, device=w.device))


@dataclass(frozen=True)
class Spectrum:
    """ω_k² = (1 + ((k - k0) / κ)²)^-ν + φ². The floor φ is what a kernel may have beside its main shape."""

    centre: float
    width: float
    decay: float
    floor: float = 0.0

    def weights(self, count: int, device: torch.device) -> Float[Tensor, " R"]:
        k = torch.arange(count, dtype=torch.float64, device=device)
        return ((1 + ((k - self.centre) / self.width) ** 2) ** -self.decay + self.floor**2).sqrt()


@dataclass(frozen=True)
class Group:
    """A component for every block of so many cosines with every spectrum.

    background: size, relative to the main part, of a smooth part on the whole range; none if 0.
    alike: whether its blocks, such as peaks at all places, share their odds.
    """

    blocks: tuple[Block | Peak, ...]
    spectra: tuple[Spectrum, ...]
    cosines: int
    background: float = 0.0
    alike: bool = False

    @property
    def odds(self) -> int:
        """How many odds its components have."""
        return len(self.spectra) * (1 if self.alike else len(self.blocks))


def block_of(groups: tuple[Group, ...], odds: int) -> int:
    """Number of the block of the component with these odds, in a group whose components each have their own."""
    first = 0
    for group in groups:
        if odds < group.odds:
            return first + odds // len(group.spectra)
        odds, first = odds - group.odds, first + len(group.blocks)
    raise ValueError("no such component")


BACKGROUND, BACKGROUND_COSINES = Spectrum(0, 6, 2), 24


class Component(NamedTuple):
    """K = Φ (ω z) with z ~ N(0, 1), Φ the features of one block.

    odds: which of the prior's odds it has; log_part: log of the part of them that is its own.
    """

    block: int
    omega: Float[Tensor, " R"]
    odds: int
    log_part: float = 0.0


class Features(NamedTuple):
    """Blocks of features on one grid, and the components made of them."""

    blocks: list[Tensor]
    components: list[Component]

    @classmethod
    def of(cls, groups: tuple[Group, ...], t: Float[Tensor, " N"], h: float) -> "Features":
        blocks, components, first = [], [], 0
        for group in groups:
            behind = group.background * BACKGROUND.weights(BACKGROUND_COSINES if group.background else 0, t.device)
            omegas = [torch.cat([spectrum.weights(group.cosines, t.device), behind]) for spectrum in group.spectra]
            log_part = -math.log(len(group.blocks)) if group.alike else 0.0
            for number, block in enumerate(group.blocks):
                own = first + (0 if group.alike else number * len(omegas))
                components += [Component(len(blocks), omega, own + i, log_part) for i, omega in enumerate(omegas)]
                features = block.features(t, h, group.cosines)
                blocks.append(torch.cat([features, Block().features(t, h, len(behind))], dim=1))
            first += group.odds
        return cls(blocks, components)

    def extended(self, blocks: list[Tensor], components: list[Component]) -> "Features":
        """With more of them, whose numbers of blocks begin at 0."""
        own = [component._replace(block=component.block + len(self.blocks)) for component in components]
        return Features([*self.blocks, *blocks], [*self.components, *own])
