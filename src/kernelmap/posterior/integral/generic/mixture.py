"""The bands of one system, each a mixture of components: bands are independent, so their variances add."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.grids import Grid
from kernelmap.posterior.integral.generic.bands import Bands
from kernelmap.posterior.integral.generic.component import Component
from kernelmap.posterior.integral.generic.matern import Matern
from kernelmap.posterior.integral.generic.pairs import Hypothesis, Pairs


class Weighted(NamedTuple):
    """A hypothesis about a band, its weight there, and its likeliest amplitude."""

    band: int
    weight: float
    hypothesis: Hypothesis
    a2: float


@dataclass(frozen=True)
class Mixture:
    """K = unit Σ_bands V Z, and Z of a band Σ_c weight_c N(mean_c, variance_c).

    A_scale, f_scale: sizes of w U and of F; all else is in these units. s2: variance of the noise on f.
    nonlinearity: log odds that responses are not linear in u.
    """

    pairs: Pairs
    weighted: tuple[Weighted, ...]
    A_scale: float
    f_scale: float
    s2: float
    nonlinearity: float

    @property
    def unit(self) -> float:
        return self.f_scale / self.A_scale

    @cached_property
    def bands(self) -> list[tuple[Float[Tensor, "M m"], list[tuple[float, Component]]]]:
        """The functions of x of every band, and its components with their weights."""
        bands = [(self.pairs.bands.V[:, members], []) for members in self.pairs.bands.members]
        for band, weight, hypothesis, a2 in self.weighted:
            bands[band][1].append((weight, Component.of(self.pairs, hypothesis, band, a2, self.s2)))
        return bands

    def moments(
        self, of: Callable[[Component], tuple[Float[Tensor, "m n"], Float[Tensor, " n"]]]
    ) -> tuple[Float[Tensor, "M n"], Float[Tensor, "M n"]]:
        """Mean and variance of n functionals of K(x, ·) at every x.

        Var = Σ_bands Σ_c weight_c [ Σ_i V_xi² variance_c + (V mean_c - V mean)² ]
        """
        means, variances = [], []
        for V, parts in self.bands:
            found = [(weight, *of(component)) for weight, component in parts]
            mean = torch.stack([weight * z for weight, z, _ in found]).sum(dim=0)
            within = torch.stack([weight * v for weight, _, v in found]).sum(dim=0)
            between = torch.stack([weight * (V @ (z - mean)).square() for weight, z, _ in found]).sum(dim=0)
            means.append(V @ mean)
            variances.append(V.square().sum(dim=-1)[:, None] * within + between)
        return torch.stack(means).sum(dim=0), torch.stack(variances).sum(dim=0)

    def prior_variance(self) -> Float[Tensor, "M 1"]:
        """Of K(x, y), which is the same for all y."""
        each = [V.square().sum(dim=-1) * sum(weight * c.a2 / c.t for weight, c in parts) for V, parts in self.bands]
        return torch.stack(each).sum(dim=0)[:, None]

    def sample(self, count: int, generator: torch.Generator | None) -> Float[Tensor, "count M N"]:
        draws = self.pairs.A.new_zeros(count, len(self.pairs.G), len(self.pairs.A))
        for V, parts in self.bands:
            weights = torch.tensor([weight for weight, _ in parts])
            chosen = torch.multinomial(weights, count, replacement=True, generator=generator).tolist()
            roots = {i: parts[i][1].root() for i in set(chosen)}
            for K, i in zip(draws, chosen, strict=True):
                K += V @ parts[i][1].sample(roots[i], generator)
        return draws

    def state(self) -> dict[str, Tensor]:
        pairs, numbers = self.pairs, self.pairs.A.new_tensor
        return {
            "A": pairs.A,
            "ones": pairs.ones,
            "G": pairs.G,
            "V": pairs.bands.V,
            "members": numbers([[members.start, members.stop] for members in pairs.bands.members]),
            "rest_count": numbers(pairs.rest_count),
            "weighted": numbers([[band, w, *h.matern, h.tau, a2] for band, w, h, a2 in self.weighted]),
            "sizes": numbers([self.A_scale, self.f_scale, self.s2, self.nonlinearity]),
        }

    @classmethod
    def restored(cls, state: dict[str, Tensor], y: Grid) -> "Mixture":
        bands = Bands(state["V"], tuple(slice(int(low), int(high)) for low, high in state["members"].tolist()))
        rest = state["A"].new_zeros(len(bands.members))
        pairs = Pairs(state["A"], state["ones"], state["G"], y, bands, rest, int(state["rest_count"]))
        weighted = [
            Weighted(int(band), weight, Hypothesis(Matern(int(p), length), tau), a2)
            for band, weight, p, length, tau, a2 in state["weighted"].tolist()
        ]
        return cls(pairs, tuple(weighted), *state["sizes"].tolist())
