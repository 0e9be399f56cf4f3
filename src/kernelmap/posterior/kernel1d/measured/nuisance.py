"""What f has besides the kernel's response: an offset, and a trend in time or place.

f = Uᵀ diag(w) K + Z β + e ,    Z = 1 for an offset, (t - t₀) / t₁ for a trend
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.places import Places

OFFSET, TREND = "offset", "trend"
UNKNOWN = (OFFSET, TREND)


class Clock(NamedTuple):
    """The middle t₀ and half the length t₁ of the places at which the pairs were measured."""

    middle: float
    half: float

    @classmethod
    def of(cls, places: Places | None) -> "Clock":
        if places is None:
            return cls(0.0, 1.0)
        t = places.values[:, -1]
        half = float(t.max() - t.min()) / 2
        return cls(float(t.max() + t.min()) / 2, half if half > 0 else 1.0)


def unknowns(context: Context) -> tuple[str, ...]:
    """Those that the context names; data in time have an offset unless it says otherwise."""
    if context.unknown is not None:
        return context.unknown
    return (OFFSET,) if in_time(context) else ()


def in_time(context: Context) -> bool:
    return context.operator == "convolution" and context.places is not None


def nuisance_columns(names: tuple[str, ...], count: int, clock: Clock, places: Places | None) -> Float[Tensor, "n q"]:
    """Z of so many pairs, at their places."""
    found = []
    for name in names:
        if name == TREND and places is None:
            raise InputError("a trend needs the times or places of the pairs; give t, or leave the trend out.")
        if name == TREND and places is not None:
            found.append((places.values[:, -1].double() - clock.middle) / clock.half)
        else:
            found.append(torch.ones(count, dtype=torch.float64))
    return torch.stack(found, dim=1) if found else torch.zeros(count, 0, dtype=torch.float64)


class Nuisance(NamedTuple):
    """β given the pairs and a kernel: values - tokensᵀ diag(w) K, with variance κ S.

    tokens: U Gᵀ, values: G f, in the user's units.
    """

    names: tuple[str, ...]
    clock: Clock
    tokens: Float[Tensor, "N q"]
    values: Float[Tensor, " q"]
    S: Float[Tensor, "q q"]


def columns(nuisance: Nuisance | None, count: int, places: Places | None) -> Float[Tensor, "n q"]:
    """Z of so many pairs, at their places."""
    names, clock = ((), Clock(0.0, 1.0)) if nuisance is None else (nuisance.names, nuisance.clock)
    return nuisance_columns(names, count, clock, places)
