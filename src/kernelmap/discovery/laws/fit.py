"""The evidence of a family by Laplace's method, with parameters and their errors."""

import math
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import least_squares

from kernelmap.discovery.laws.families import Family
from kernelmap.discovery.laws.pairs import Pairs

STARTS = 2
"""Of the grid's best points, from which least squares start."""

MOST = 50
"""Evaluations of a fit: of laws that fit, least squares take ten."""

AMPLITUDE = 3.0
"""Prior standard deviation of an amplitude, in units in which its response has the size of f."""

TOLD = 3.0
"""Standard deviations from zero."""

AT_END = 1e-3
"""Of log θ."""

LOG_NOISE = math.log(10.0 / 1e-7)
"""Length of the prior of log σ, uniform between the noise levels that the posterior knows too."""

LEAST_NOISE = 1e-6
"""Relative to f: rounding."""


class Fitted(NamedTuple):
    """Amplitudes and θ, with their covariance in amplitudes and log θ, all in the units of `Pairs`."""

    family: Family
    amplitudes: Float[np.ndarray, " L"]
    theta: Float[np.ndarray, " P"]
    covariance: Float[np.ndarray, "q q"]
    noise: float
    log_evidence: float


def fit(family: Family, pairs: Pairs) -> Fitted | None:
    """The best of a few least-squares fits; None where a simpler law would do."""
    found = [_refined(family, pairs, start) for start in _starts(family, pairs)]
    best = max((one for one in found if one is not None), key=lambda one: one.log_evidence, default=None)
    return None if best is None or not _is_told(best) else best


def _is_told(found: Fitted) -> bool:
    """Whether all of a law is needed.

    A sum needs amplitudes beyond three of their errors. A law of two parameters with one at an end of its range, such
    as a wave without damping, is a limit of it that has fewer.
    """
    L, P = len(found.amplitudes), len(found.theta)
    ends = np.array([(p.low, p.high) for p in found.family.parameters])
    if P > 1 and (np.abs(np.log(found.theta[:, None] / ends)) < AT_END).any():
        return False
    errors = np.sqrt(np.diag(found.covariance))[:L]
    return len(found.family.terms) == 1 or bool((np.abs(found.amplitudes) > TOLD * errors).all())


def _starts(family: Family, pairs: Pairs) -> list[np.ndarray]:
    """The points of the grid with the least squares, amplitudes profiled out."""
    grid = np.array(list(product(*(parameter.grid() for parameter in family.parameters))))
    shapes = np.stack([family.shapes(pairs.t, pairs.h, theta) for theta in grid])
    columns = pairs.responses(shapes.reshape(-1, len(pairs.t))).reshape(*shapes.shape[:2], -1)
    sizes = np.linalg.norm(columns, axis=-1, keepdims=True)
    columns = columns / np.where(sizes > 0, sizes, 1.0)
    gram = columns @ columns.mT + 1e-9 * np.eye(columns.shape[1])
    product_f = columns @ pairs.f
    explained = (product_f * np.linalg.solve(gram, product_f[..., None])[..., 0]).sum(axis=-1)
    return [grid[index] for index in np.argsort(-np.nan_to_num(explained, nan=-np.inf))[:STARTS]]


def _refined(family: Family, pairs: Pairs, start: np.ndarray) -> Fitted | None:
    """Minimise |f - G Σ A φ(θ)|² in A and log θ."""
    L = len(family.amplitudes)

    def columns(theta: np.ndarray) -> np.ndarray:
        return pairs.responses(family.shapes(pairs.t, pairs.h, theta)).T

    sizes = np.linalg.norm(columns(start), axis=0) / math.sqrt(pairs.count)
    if not (np.isfinite(sizes) & (sizes > 0)).all():
        return None

    def residual(values: np.ndarray) -> np.ndarray:
        return columns(np.exp(values[L:])) @ (values[:L] / sizes) - pairs.f

    first = np.linalg.lstsq(columns(start) / sizes, pairs.f, rcond=None)[0]
    low, high = (np.log([getattr(p, end) for p in family.parameters]) for end in ("low", "high"))
    bounds = (np.concatenate([np.full(L, -np.inf), low - 1e-9]), np.concatenate([np.full(L, np.inf), high + 1e-9]))
    try:
        start_at = np.concatenate([first, np.log(start)])
        best = least_squares(residual, start_at, bounds=bounds, x_scale="jac", ftol=1e-6, max_nfev=MOST)
    except (ValueError, np.linalg.LinAlgError):
        return None
    variance = max((2 * best.cost + pairs.outside) / pairs.count, LEAST_NOISE**2)
    # The priors in the same units: amplitudes N(0, AMPLITUDE²), log θ with the variance of a uniform one.
    spread = np.concatenate([np.full(L, AMPLITUDE), (high - low) / math.sqrt(12)])
    precision = best.jac.T @ best.jac / variance + np.diag(spread**-2.0)
    sign, log_det = np.linalg.slogdet(precision)
    if sign <= 0 or not np.isfinite(log_det):
        return None
    prior = -0.5 * float(np.square(best.x[:L] / AMPLITUDE).sum()) - float(np.log(spread).sum())
    n = pairs.count
    likelihood = -0.5 * n * (math.log(2 * math.pi * variance) + 1) + pairs.log_repeats
    noise = 0.5 * math.log(math.pi / n) - math.log(LOG_NOISE)
    evidence = likelihood + prior + noise - 0.5 * log_det
    scale = np.concatenate([1 / sizes, np.ones(len(low))])
    covariance = np.linalg.inv(precision) * np.outer(scale, scale)
    theta = np.exp(best.x[L:])
    return Fitted(family, best.x[:L] / sizes, theta, covariance, math.sqrt(variance), float(evidence))
