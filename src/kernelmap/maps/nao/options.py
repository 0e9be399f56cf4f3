"""Size and form of a NAO."""

from dataclasses import dataclass
from typing import Literal

from kernelmap.core.errors import InputError

Normaliser = Literal["continuous", "functions", "tokens", "array"]


@dataclass(frozen=True)
class NAOOptions:
    """Size and form of a NAO.

    Attributes:
        dk: width of queries and keys per head.
        layers: attention layers, of which the last gives the kernel.
        heads: attention heads, each with its own normaliser and its own part of the kernel.
        normaliser: `continuous` (functions of position), `functions` (LayerNorm over the whole array, with functions of
            position for every pair), or LayerNorm over `tokens` or the whole `array`; the map's own choice by default.
        hidden: widths of the hidden layers of functions of position.
        rank: terms a(x) b(z) of the functions of two positions, which then cost as much as the grid is long; by default
            they are networks of (x, z).
        per_component: a map of its own for every component of the output.
    """

    dk: int = 10
    layers: int = 2
    heads: int = 1
    normaliser: Normaliser | None = None
    hidden: tuple[int, int] = (32, 64)
    rank: int | None = None
    per_component: bool = False

    def __post_init__(self) -> None:
        sizes = (self.dk, self.layers, self.heads, *self.hidden, 1 if self.rank is None else self.rank)
        if min(sizes) < 1:
            raise InputError(f"dk, layers, heads, hidden widths and rank must be at least 1, got {sizes}.")
