"""Kernels with jumps: smooth pieces between edges at any places.

    K(t) = Σ_k cos(π k w(t)) ω_k z_pk  on piece p ,  z ~ N(0, 1) ,  edges e_1 < .. < e_m between points of the grid

With or without a last piece: its weights are ω, or ω times the background of a kernel that ends. Where in its cell of
width h an edge lies is one more unknown: it adds p h ΔK U(e) to all responses and nothing to the kernel on the grid,
with p uniform and ΔK the jump, of variance 2 E[K²]. The number of edges has odds; their places are uniform. All places
cannot be tried together: edges are found one after the other, each beside the likeliest others, and the likeliest
configurations of every number of edges become components.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.grids import Grid
from kernelmap.posterior.kernel1d.components import Block, Component, Spectrum
from kernelmap.posterior.kernel1d.errors import UNIFORM_VARIANCE

PLACES = 1000
"""At most so many places of edges, between points of the grid."""

CONFIGURATIONS = 8
"""Of every number of edges, the likeliest that are kept."""

Edges = tuple[int, ...]
"""Numbers of places, rising."""


@dataclass(frozen=True)
class Pieces:
    """What kernels with jumps are made of: cosines in a piece, their spectra, sizes of the last piece, most edges."""

    cosines: int
    spectra: tuple[Spectrum, ...]
    last: tuple[float, ...]
    most: int

    @property
    def odds(self) -> int:
        return self.most * len(self.spectra) * len(self.last)

    def omegas(self, edges: int, device: torch.device) -> list[Float[Tensor, " R"]]:
        """Weights of the features, of every spectrum and size of the last piece."""
        found = []
        for spectrum in self.spectra:
            omega = spectrum.weights(self.cosines, device)
            power = omega.square().sum() / 2 + omega[:1].square() / 2
            shift = (2 * UNIFORM_VARIANCE * power).sqrt().expand(edges)
            found += [torch.cat([omega.repeat(edges), size * omega, shift]) for size in self.last]
        return found

    def components(
        self, configurations: Sequence[Edges], places: int, first: int, device: torch.device
    ) -> list[Component]:
        """Of every configuration, all on blocks of their own; `first`: number of the odds of one edge."""
        found = []
        for block, edges in enumerate(configurations):
            omegas, m = self.omegas(len(edges), device), len(edges)
            log_part = -math.log(math.comb(places, m))
            own = first + (m - 1) * len(omegas)
            found += [Component(block, omega, own + i, log_part) for i, omega in enumerate(omegas)]
        return found


def places_of_edges(t: Float[Tensor, " N"]) -> list[int]:
    """Numbers of the points after an edge; every one, or so many in equal strides."""
    count = min(len(t) - 1, PLACES)
    return np.linspace(1, len(t) - 1, count).round().astype(int).tolist()


@dataclass(frozen=True)
class Responses:
    """Responses to cosines up to every place, so that those of any piece are a difference.

    up_to: from nothing to the whole range.
    shifts: of an edge at each place by the width of its cell.
    """

    features: Float[Tensor, "N R"]
    places: list[int]
    up_to: Float[Tensor, "ends d R"]
    shifts: Float[Tensor, "P d"]

    @classmethod
    def of(cls, pieces: Pieces, U: Float[Tensor, "N d"], unit: float, y: Grid, h: float) -> "Responses":
        """To tokens in their unit, on the grid of the engine."""
        t, weights = y.points[:, 0], y.weights / unit
        phi, places = Block().features(t, h, pieces.cosines), places_of_edges(t)
        ends = [0, *places, len(t)]
        parts = [U[a:b].mT @ (weights[a:b, None] * phi[a:b]) for a, b in pairwise(ends)]
        up_to = torch.cat([torch.zeros_like(parts[0])[None], torch.stack(parts).cumsum(dim=0)])
        width = (t[-1] - t[0]) / len(places)
        return cls(phi, places, up_to, width * (U[places] + U[[place - 1 for place in places]]) / (2 * unit))

    def of_pieces(self, edges: Edges) -> Float[Tensor, "d R"]:
        ends = [0, *(edge + 1 for edge in edges), len(self.up_to) - 1]
        parts = [self.up_to[b] - self.up_to[a] for a, b in pairwise(ends)]
        return torch.cat([*parts, self.shifts[list(edges)].mT], dim=1)

    def features_of(self, edges: Edges) -> Float[Tensor, "N R"]:
        ends = [0, *(self.places[edge] for edge in edges), len(self.features)]
        parts = []
        for a, b in pairwise(ends):
            part = torch.zeros_like(self.features)
            part[a:b] = self.features[a:b]
            parts.append(part)
        return torch.cat([*parts, self.features.new_zeros(len(self.features), len(edges))], dim=1)


Score = Callable[[Float[Tensor, "C d R"], Float[Tensor, "S R"]], Float[Tensor, "C S"]]
"""Log evidence of components, given the responses of their blocks and their weights ω."""


def likeliest_edges(pieces: Pieces, responses: Responses, log_odds: Float[Tensor, "m S"], score: Score) -> list[Edges]:
    """Configurations of one edge, two, ..: each number is tried while its evidence grows.

    An edge is added where it is likeliest beside the others, first in strides, then around the likeliest place; then
    each of the others moves once.
    """
    count, found, best, reached = len(responses.places), [], (), -math.inf
    stride = max(5, math.isqrt(count) // 2)
    for m in range(1, min(pieces.most, count) + 1):
        omegas = torch.stack(pieces.omegas(m, responses.up_to.device))
        tried: dict[Edges, float] = {}

        def try_places(
            others: Edges, places: Iterable[int], tried: dict[Edges, float] = tried, omegas: Tensor = omegas
        ) -> Edges:
            new = {tuple(sorted((*others, place))) for place in places if place not in others} - tried.keys()
            if new:
                scores = score(torch.stack([responses.of_pieces(edges) for edges in sorted(new)]), omegas)
                scores = (scores + log_odds[len(others)]).logsumexp(dim=1) - math.log(math.comb(count, len(others) + 1))
                tried.update(zip(sorted(new), scores.tolist(), strict=True))
            return max(tried, key=tried.__getitem__)

        top = try_places(best, range(stride // 2, count, stride))
        for edge in (*set(top) - set(best), *best):
            if edge in top:
                near = range(max(0, edge - stride), min(count, edge + stride + 1))
                top = try_places(tuple(sorted(set(top) - {edge})), near)
        ranked = sorted(tried, key=tried.__getitem__, reverse=True)
        found += ranked[:CONFIGURATIONS]
        best, last = top, reached
        reached = math.log(sum(math.exp(tried[edges] - tried[best]) for edges in tried)) + tried[best]
        if reached <= last:
            break
    return found
