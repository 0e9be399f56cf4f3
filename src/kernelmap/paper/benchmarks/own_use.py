"""Discovery as a new user tries it: other kernels than in training, other inputs, few pairs, noise.

Twelve families of kernels and six kinds of inputs that take no part in learning or in choosing any constant. Responses
are exact to the quadrature of `response`; tokens are sampled at 220 radii. Beside the model: DARTR, Tikhonov and a
plain Gaussian process with Matérn covariance.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.metrics import coverage, exploration_measure, kernel_error
from kernelmap.core.progress import progress
from kernelmap.discovery import discover
from kernelmap.estimators import dartr, tikhonov
from kernelmap.io.models import load_model
from kernelmap.paper.benchmarks.gaussian_process import matern_posterior

RADIUS, RADII, PAIRS, FUNCTIONS = 11.0, 220, 300, 6
COUNTS = (300, 100, 30)
LEVELS = (0.0, 0.01, 0.03, 0.10)
REFINEMENT = 16
"""Cells of the response's quadrature in one step of the radii."""

Array = np.ndarray
Function = Callable[[Array], Array]


def families(rng: np.random.Generator) -> dict[str, Function]:
    """One kernel K(r) of each family, with random parameters."""

    def between(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    a, b, c, d, e = between(0.5, 3), between(0.5, 3), between(0.8, 4), between(1, 3), between(0.5, 2)
    centre, width = rng.uniform(2, 8), between(0.1, 0.6)
    first, second = rng.uniform(1, 4), rng.uniform(5, 9)
    fast, slow = rng.uniform(6, 14), rng.uniform(1, 5)
    heights, edges = rng.normal(size=3), np.sort(rng.uniform(0.5, 9, size=3))
    return {
        "exponential": lambda r: np.exp(-r / a),
        "logarithm": lambda r: np.log1p(b / r),
        "inverse root": lambda r: np.exp(-r / (2 * c)) / np.sqrt(r),
        "lorentzian": lambda r: 1 / (1 + (r / c) ** 2),
        "box": lambda r: (r <= 2 * c).astype(float),
        "staircase": lambda r: (heights * (r[..., None] <= edges)).sum(axis=-1),
        "triangle": lambda r: np.clip(1 - r / (2 * d), 0, None),
        "peak": lambda r: np.exp(-(((r - centre) / width) ** 2) / 2),
        "two peaks": lambda r: 1 / np.cosh((r - first) / e) - 0.7 / np.cosh((r - second) / 0.5),
        "damped wave": lambda r: np.exp(-r / d) * np.cos(slow * r),
        "fast wave": lambda r: np.exp(-(((r - 4) / 3) ** 2)) * np.sin(fast * r),
        "ricker": lambda r: (1 - (r / d) ** 2) * np.exp(-((r / d) ** 2) / 2),
    }


def inputs(kind: str, rng: np.random.Generator) -> Function:
    """`FUNCTIONS` random functions u of one kind, y -> (FUNCTIONS, *y.shape), for |y| <= 2 RADIUS."""
    n, reach = FUNCTIONS, 2 * RADIUS

    def summed(terms: Callable[[Array, int], Array], count: int) -> Function:
        return lambda y: sum(terms(y, i) for i in range(count))  # pyright: ignore

    def column(values: Array, y: Array) -> Array:
        return values.reshape(n, *[1] * y.ndim)

    if kind in ("bumps", "fronts", "steps"):
        count = {"bumps": 8, "fronts": 3, "steps": 12}[kind]
        c, h = rng.uniform(-reach, reach, (count, n)), rng.normal(size=(count, n))
        low, high = (0.3, 2.0) if kind == "bumps" else (0.05, 0.5)
        w = np.exp(rng.uniform(np.log(low), np.log(high), (count, n)))
        shape = {
            "bumps": lambda z: np.exp(-(z**2) / 2),
            "fronts": np.tanh,
            "steps": lambda z: (z > 0).astype(float),
        }[kind]
        return summed(lambda y, i: column(h[i], y) * shape((y - column(c[i], y)) / column(w[i], y)), count)
    if kind in ("noise", "modes"):
        count = 60 if kind == "noise" else 3
        k = rng.uniform(0, 10, (count, n)) if kind == "noise" else np.pi / RADIUS * rng.integers(1, 12, (count, n))
        a, phase = rng.normal(size=(count, n)), rng.uniform(0, 2 * np.pi, (count, n))
        return summed(lambda y, i: column(a[i], y) * np.cos(column(k[i], y) * y + column(phase[i], y)), count)
    if kind == "rough":
        knots = np.arange(-reach - 0.1, reach + 0.1, 0.02)
        steps = rng.normal(size=(n, len(knots))) * np.sqrt(0.02)
        path = np.zeros_like(steps)
        for i in range(1, len(knots)):
            path[:, i] = path[:, i - 1] * (1 - 0.02) + steps[:, i]
        return lambda y: np.stack([np.interp(y, knots, row) for row in path])
    raise AssertionError(kind)


INPUTS = ("bumps", "noise", "fronts", "steps", "modes", "rough")


class System(NamedTuple):
    """Exact pairs of one kernel and one kind of inputs, and the kernel on the radii."""

    U: Float[Array, "N d"]
    f: Float[Array, " d"]
    kernel: Float[Array, " N"]


def system(kernel: Function, functions: Function, rng: np.random.Generator) -> System:
    """Tokens and responses at random places of random inputs."""
    r = RADIUS / RADII * np.arange(1, RADII + 1)
    x, which = rng.uniform(-RADIUS, RADIUS, PAIRS), rng.integers(FUNCTIONS, size=PAIRS)
    nodes, masses = cell_masses(kernel)

    def tokens(radii: Array) -> Array:
        u = functions(x[:, None] + radii) + functions(x[:, None] - radii) - 2 * functions(x)[..., None]
        return u[which, np.arange(PAIRS)]

    return System(tokens(r).T, tokens(nodes) @ masses, kernel(r))


def cell_masses(kernel: Function) -> tuple[Array, Array]:
    """Midpoints of fine cells and ∫ K over each, singularities at 0 included: f = Σ mass g[u](midpoint)."""
    count = RADII * REFINEMENT
    edges = np.linspace(0, RADIUS, count + 1)
    z, w = np.polynomial.legendre.leggauss(24)
    # r = edge s⁴ in the first cell makes an integrable singularity smooth.
    s = (z + 1) / 2
    first = np.sum(w / 2 * 4 * s**3 * kernel(edges[1] * s**4)) * edges[1]
    h = np.diff(edges)[1:, None]
    rest = (h / 2 * w * kernel(edges[1:-1, None] + h * (z + 1) / 2)).sum(axis=1)
    return (edges[:-1] + edges[1:]) / 2, np.concatenate([[first], rest])


def context_of(found: System, d: int, level: float, rng: np.random.Generator) -> Context:
    f = found.f[:d] + level * np.sqrt(np.mean(found.f**2)) * rng.normal(size=d)
    U, F = torch.from_numpy(found.U[:, :d].copy()), torch.from_numpy(f[None])
    return Context(U, F, grids.radii(RADIUS / RADII, RADII), grids.point())


class Scores(NamedTuple):
    """Of one estimate: its error in L²(ρ), coverage of its 95 % band, expected error, number of diagnostics."""

    error: float
    coverage: float | None = None
    expected: float | None = None
    diagnostics: int | None = None

    @property
    def silent(self) -> bool:
        """Wrong beyond its own doubt, and not a word."""
        assert self.expected is not None
        return self.error > max(0.2, 2 * self.expected) and not self.diagnostics

    @property
    def false_alarm(self) -> bool:
        """A diagnostic though the kernel is right."""
        assert self.expected is not None
        return self.error < min(0.1, 2 * self.expected) and bool(self.diagnostics)


def score(context: Context, truth: Array, kernel: Array, std: Array | None, diagnostics: int | None = None) -> Scores:
    rho = exploration_measure(context.U.mT, context.y)
    true, found = (torch.from_numpy(values)[None] for values in (truth, kernel))
    error = float(kernel_error(found, true, rho, context.y))
    if std is None:
        return Scores(error)
    band = torch.from_numpy(std)[None]
    expected = kernel_error(found + band, found, rho, context.y)
    return Scores(error, float(coverage(found, band, true, rho, context.y)), float(expected), diagnostics)


def estimates(model: Any, context: Context, truth: Array) -> dict[str, Scores]:
    """Scores of the model and of what a user would reach for instead."""
    found = discover(model, context)
    kernel, std = found.kernel.values[0].numpy(), found.std[0].numpy()
    result = {"model": score(context, truth, kernel, std, len(found.diagnostics))}
    processes = {f"matern {name}": matern_posterior(context, nu) for name, nu in (("3/2", 1.5), ("5/2", 2.5))}
    processes["matern"] = max(processes.values(), key=lambda process: process.log_evidence)
    for name, process in processes.items():
        result[name] = score(context, truth, process.mean, process.std)
    for name, estimator in (("dartr", dartr), ("tikhonov", tikhonov)):
        result[name] = score(context, truth, estimator(context).kernel.values[0].numpy(), None)
    return result


class Case(NamedTuple):
    family: str
    inputs: str
    d: int
    noise: float
    scores: dict[str, Scores]


def run(model: Any, seed: int) -> list[Case]:
    """Every family with every kind of inputs, number of pairs and level of noise."""
    names = list(families(np.random.default_rng(seed)))
    cases = []
    for number, (name, kind) in enumerate(progress([(n, k) for n in names for k in INPUTS], "Own use")):
        rng = np.random.default_rng([seed, number])
        found = system(families(rng)[name], inputs(kind, rng), rng)
        for d in COUNTS:
            for level in LEVELS:
                context = context_of(found, d, level, rng)
                cases.append(Case(name, kind, d, level, estimates(model, context, found.kernel)))
    return cases


def summary(cases: list[Case]) -> dict[str, float | int]:
    """Errors in percent, of the model and of the others."""
    errors = {name: 100 * np.array([case.scores[name].error for case in cases]) for name in cases[0].scores}
    model = [case.scores["model"] for case in cases]
    row: dict[str, float | int] = {"cases": len(cases), "median": float(np.median(errors["model"]))}
    row |= {f"median {name}": float(np.median(e)) for name, e in errors.items() if name != "model"}
    row |= {"worst": float(errors["model"].max()), "worst matern": float(errors["matern"].max())}
    row |= {"above 50": float(100 * np.mean(errors["model"] > 50))}
    row |= {"above 50 matern": float(100 * np.mean(errors["matern"] > 50))}
    for name in ("model", "matern"):
        covered = [case.scores[name].coverage or 0.0 for case in cases]
        row["coverage" if name == "model" else "coverage matern"] = float(100 * np.mean(covered))
    row |= {"silent": float(100 * np.mean([s.silent for s in model]))}
    return row | {"false alarms": float(100 * np.mean([s.false_alarm for s in model]))}


def bench_own_use(model: str, seed: int = 0) -> dict[str, Any]:
    start = time.perf_counter()
    cases = run(load_model(model)[0], seed)

    def grouped(key: Callable[[Case], Any]) -> list[dict[str, Any]]:
        keys = list(dict.fromkeys(key(case) for case in cases))
        return [{"group": k} | summary([case for case in cases if key(case) == k]) for k in keys]

    return {
        "cases": grouped(lambda case: f"d = {case.d}, {case.noise:.0%}"),
        "families": grouped(lambda case: case.family),
        "inputs": grouped(lambda case: case.inputs),
        "model": model,
        "seed": seed,
        "seconds": time.perf_counter() - start,
    }
