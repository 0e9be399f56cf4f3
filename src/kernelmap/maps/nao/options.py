"""Size and form of a NAO."""

from dataclasses import dataclass
from typing import Literal

from kernelmap.core.errors import InputError

Mixer = Literal["spectral", "network", "convolution"]
"""The form of W_u and W_f."""

MOST_LAYERS = 1000
"""More would fill the memory one by one."""

Normaliser = Literal["continuous", "uncentred", "functions", "tokens", "array"]

Start = Literal["random", "inverse"]
"""Where W_Q W_Kᵀ starts."""


@dataclass(frozen=True)
class NAOOptions:
    """Size and form of a NAO.

    Attributes:
        dk: width of queries and keys per head.
        layers: attention layers, of which the last gives the kernel.
        heads: attention heads, each with its own normaliser and its own part of the kernel.
        normaliser: `continuous` (functions of position), `uncentred` (the same, but the mean stays), `functions`
            (LayerNorm over the whole array, with functions of position for every pair), or LayerNorm over `tokens` or
            the whole `array`; the map's own choice by default.
        mixer: form of the functions W(x, z): `spectral` (pointwise and cosines, of the order of the grid), `network`
            (of (x, z), as in the paper, of the order of its square) or `convolution` (of x - z, as in NIPS); by default
            spectral for fields, and networks where the output is a single point.
        waves: cosines of W in each direction; 32 on a line and 12 in the plane by default (8 of a convolution).
        hidden: widths of the hidden layers of networks of position.
        start: of W_Q W_Kᵀ, at `random` or at the Newton-Schulz `inverse` of the tokens' mean Gram matrix.
        per_component: a map of its own for every component of the output.
    """

    dk: int = 10
    layers: int = 2
    heads: int = 1
    normaliser: Normaliser | None = None
    mixer: Mixer | None = None
    waves: int | None = None
    hidden: tuple[int, int] = (32, 64)
    start: Start = "random"
    per_component: bool = False

    def __post_init__(self) -> None:
        sizes = (self.dk, self.layers, self.heads, *self.hidden, 1 if self.waves is None else self.waves)
        if min(sizes) < 1:
            raise InputError(f"dk, layers, heads, hidden widths and waves must be at least 1, got {sizes}.")
        if self.layers > MOST_LAYERS:
            raise InputError(f"layers must be at most {MOST_LAYERS}, got {self.layers}.")
