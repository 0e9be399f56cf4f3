"""Random kernels K(t), t in (0, 1], of many shapes: what the prior of `kernel1d` means by "a kernel"."""

from collections.abc import Callable

import numpy as np
from scipy.interpolate import CubicSpline

Array = np.ndarray
Function = Callable[[Array], Array]

TWO_SHAPES = 0.3
"""Share of the kernels that are a sum of two shapes."""


def random_kernel(rng: np.random.Generator) -> Function:
    """One shape, or a sum of two, of either sign."""
    shapes = [SHAPES[rng.integers(len(SHAPES))](rng) for _ in range(2 if rng.random() < TWO_SHAPES else 1)]
    weights = rng.normal(size=len(shapes))
    t = np.linspace(0.002, 1, 500)
    sizes = [np.sqrt(np.mean(shape(t) ** 2)) for shape in shapes]
    return lambda t: sum(w / s * shape(t) for w, s, shape in zip(weights, sizes, shapes, strict=True))  # pyright: ignore


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def smooth(rng: np.random.Generator) -> Function:
    """A cubic spline through random values at 4 to 10 knots, damped towards t = 1."""
    count, power = rng.integers(4, 11), rng.choice([0.0, 1.0, 2.0])
    spline = CubicSpline(np.linspace(0, 1, count), rng.normal(size=count))
    return lambda t: spline(t) * (1 - t) ** power


def long_tailed(rng: np.random.Generator) -> Function:
    """(1 + t / (m l))^-m, from algebraic to almost exponential."""
    length, m = log_uniform(rng, 0.02, 0.6), log_uniform(rng, 1.5, 20)
    return lambda t: (1 + t / (m * length)) ** -m


def singular(rng: np.random.Generator) -> Function:
    """t^-a (1 - t)^b: integrable at 0."""
    a, b = rng.uniform(0.1, 0.8), rng.uniform(0.5, 8)
    return lambda t: np.maximum(t, 1e-300) ** -a * np.clip(1 - t, 0, None) ** b


def stepped(rng: np.random.Generator) -> Function:
    """A spline that is multiplied by another random factor in each of 2 to 5 pieces."""
    pieces = rng.integers(2, 6)
    edges, factors = np.sort(rng.uniform(0, 1, pieces - 1)), rng.normal(size=pieces) * (rng.random(pieces) < 0.8)
    if not factors.any():
        factors[0] = 1.0
    count = rng.integers(4, 7)
    spline = CubicSpline(np.linspace(0, 1, count), 1 + 0.5 * rng.normal(size=count))
    return lambda t: spline(t) * factors[np.searchsorted(edges, t)]


def oscillating(rng: np.random.Generator) -> Function:
    """(1 + t / l)^-m sin(k t + c t² + phase), with or without a start from zero."""
    length, m, start = log_uniform(rng, 0.05, 1), rng.uniform(1.5, 6), rng.choice([0.0, 1.0, 2.0])
    k, chirp, phase = log_uniform(rng, 5, 160), rng.normal(), rng.uniform(0, 2 * np.pi)
    return lambda t: t**start * (1 + t / length) ** -m * np.sin(k * t * (1 + 0.1 * chirp * t) + phase)


def peaked(rng: np.random.Generator) -> Function:
    """One to three peaks (1 + ((t - c) / w)²)^-m, narrow or wide."""
    count = rng.integers(1, 4)
    c, h, m = rng.uniform(0.02, 0.95, count), rng.normal(size=count), rng.uniform(1.5, 5, count)
    w = np.array([log_uniform(rng, 0.015, 0.3) for _ in range(count)])
    return lambda t: (h * (1 + ((t[..., None] - c) / w) ** 2) ** -m).sum(axis=-1)


def compact(rng: np.random.Generator) -> Function:
    """(1 - (t / c)^p)^q up to t = c, zero beyond."""
    c, p, q = rng.uniform(0.08, 0.95), rng.uniform(1.5, 4), rng.uniform(0.3, 3)
    return lambda t: np.clip(1 - (t / c) ** p, 0, None) ** q


def response(rng: np.random.Generator) -> Function:
    """t^n exp(-t / l) after a delay: the answer of a cascade of reservoirs."""
    n, length, delay = rng.uniform(0.3, 4), log_uniform(rng, 0.02, 0.2), rng.choice([0.0, rng.uniform(0, 0.3)])
    return lambda t: np.where(t > delay, (np.abs(t - delay) / length) ** n * np.exp(-np.abs(t - delay) / length), 0.0)


SHAPES = (smooth, long_tailed, singular, stepped, oscillating, peaked, compact, response)
