"""The input functions u of the radial problem, and the mesh of locations x."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Variant = Literal["paper", "released"]

RADIUS = 11.0
FINEST_DX = 0.0125


@dataclass(frozen=True)
class Inputs:
    """Functions u_1..u_n as one callable y -> (n, *y.shape), zero outside the first and last breakpoint."""

    functions: Callable[[np.ndarray], np.ndarray]
    breakpoints: tuple[float, ...]


def two_waves(variant: Variant) -> Inputs:
    """cos x and sin 2x on [-π, π]: the inputs of all settings but `single`."""
    return _on_period(lambda y: np.stack([np.cos(y), np.sin(2 * y)]), variant)


def fourteen_waves(variant: Variant) -> Inputs:
    """cos kx for k = 1..7 and sin kx for k = 8..14, on [-π, π]: the inputs of the single-task setting."""
    return _on_period(
        lambda y: np.stack([np.cos(k * y) for k in range(1, 8)] + [np.sin(k * y) for k in range(8, 15)]),
        variant,
    )


def locations(variant: Variant, dx: float) -> np.ndarray:
    """All x within 11.01 of the inputs' support: 2265 of them at dx = 0.0125.

    The paper speaks of a mesh of [-40, 40]; on the points left out, u and f are zero.
    """
    reach = np.pi + 11.01
    if variant == "released":
        return -reach + dx * np.arange(round(2264 * FINEST_DX / dx) + 1)
    last = int(reach / dx)
    return dx * np.arange(-last, last + 1)


def _on_period(waves: Callable[[np.ndarray], np.ndarray], variant: Variant) -> Inputs:
    if variant == "paper":
        return Inputs(lambda y: waves(y) * (np.abs(y) <= np.pi), (-np.pi, np.pi))

    def tapered(y: np.ndarray) -> np.ndarray:
        edge = np.pi - np.abs(y)
        return waves(y) * np.where(edge < 0, 0.0, np.where(edge < 0.1, edge, 1.0))

    # The norm is taken on the finest mesh whatever dx is: the functions do not depend on the resolution.
    norms = np.sqrt(np.square(tapered(locations(variant, FINEST_DX))).sum(axis=1) * FINEST_DX)
    return Inputs(
        lambda y: tapered(y) / norms.reshape(-1, *[1] * np.ndim(y)),
        (-np.pi, -np.pi + 0.1, np.pi - 0.1, np.pi),
    )
