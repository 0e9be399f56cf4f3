"""Random inputs u(x) of many kinds, on lengths from a few steps of the grid to its whole range."""

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray


def random_inputs(count: int, x: Array, step: float, rng: np.random.Generator) -> Array:
    """`count` functions of one kind on the mesh x, in units of the kernel's range; `step`: the grid's spacing."""
    kind = KINDS[rng.integers(len(KINDS))]
    return np.stack([kind(x, step, rng) for _ in range(count)])


def log_uniform(rng: np.random.Generator, low: float, high: float, size: int | None = None) -> Any:
    return np.exp(rng.uniform(np.log(low), np.log(high), size))


def waves(x: Array, step: float, rng: np.random.Generator) -> Array:
    """From a single wave to dense noise, up to four points of the grid per wave."""
    count = int(log_uniform(rng, 1, 60))
    k = rng.uniform(0, log_uniform(rng, 4, np.pi / (2 * step)), count)
    return rng.normal(size=count) @ np.cos(k[:, None] * x + rng.uniform(0, 2 * np.pi, (count, 1)))


def bumps(x: Array, step: float, rng: np.random.Generator) -> Array:
    """Sums of (1 + ((x - c) / w)²)^-3."""
    count = int(rng.integers(1, 12))
    c, w = rng.uniform(x[0], x[-1], (count, 1)), log_uniform(rng, 4 * step, 0.3, count)[:, None]
    return rng.normal(size=count) @ (1 + ((x - c) / w) ** 2) ** -3


def fronts(x: Array, step: float, rng: np.random.Generator) -> Array:
    """Sums of arctan((x - c) / w)."""
    count = int(rng.integers(1, 6))
    c, w = rng.uniform(x[0], x[-1], (count, 1)), log_uniform(rng, step, 0.1, count)[:, None]
    return rng.normal(size=count) @ np.arctan((x - c) / w)


def blocks(x: Array, step: float, rng: np.random.Generator) -> Array:
    """Linear pieces with jumps between them."""
    count = rng.integers(2, 16)
    edges = np.sort(rng.uniform(x[0], x[-1], count))
    piece = np.searchsorted(edges, x)
    level, slope = rng.normal(size=count + 1), rng.choice([0.0, 1.0]) * rng.normal(size=count + 1)
    return level[piece] + slope[piece] * x


def paths(x: Array, step: float, rng: np.random.Generator) -> Array:
    """A random walk that forgets, smoothed over some steps or not at all."""
    n, spacing = len(x), x[1] - x[0]
    k = 2 * np.pi * np.fft.rfftfreq(n, spacing)
    length, smoothing = log_uniform(rng, 0.02, 1), rng.choice([0.0, step, 4 * step])
    spectrum = np.exp(-((k * smoothing) ** 2) / 2) / np.sqrt(1 + (k * length) ** 2)
    values = np.fft.irfft(np.fft.rfft(rng.normal(size=n)) * spectrum, n)
    return values / values.std()


def pulses(x: Array, step: float, rng: np.random.Generator) -> Array:
    """A wave on an interval, zero elsewhere, cut or tapered at its ends."""
    centre, half = rng.uniform(-0.5, 0.5), rng.uniform(0.15, 0.6)
    taper, k = log_uniform(rng, step, 0.1), log_uniform(rng, 2, 60)
    inside = np.clip((half - np.abs(x - centre)) / taper, 0, 1)
    return inside * np.cos(k * (x - centre) + rng.uniform(0, 2 * np.pi))


KINDS: tuple[Callable[[Array, float, np.random.Generator], Array], ...] = (waves, bumps, fronts, blocks, paths, pulses)
