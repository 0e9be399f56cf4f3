"""Laws named from pairs: kernels of known law, and kernels of none.

    python experiments/laws.py [known | fresh | none]

Each part writes `experiments/results/laws/NAME.json`. Responses are integrals on a mesh eight times finer
than that of u. `fresh` are the same laws with other inputs and noise, run once nothing was changed any more.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from measured import RESULTS
from parts import run_parts

from kernelmap.core import Context, grids
from kernelmap.discovery.laws import closed_form
from kernelmap.io import load_model
from kernelmap.maps import ProbabilisticMap
from kernelmap.operators import Convolution, Radial, SampledOperator

SEED, PAIRS, NOISE = 0, 100, 0.01
STEP, COUNT, FINER = 0.05, 200, 8

Shape = Callable[[np.ndarray], np.ndarray]


def gamma(t: np.ndarray, k: float, L: float) -> np.ndarray:
    return t ** (k - 1) * np.exp(-t / L) / (math.gamma(k) * L**k)


KNOWN: dict[str, tuple[str, str, Shape, dict[str, float]]] = {
    "exp(-t/1.5)": ("causal", "exponential", lambda t: np.exp(-t / 1.5), {"A": 1, "L": 1.5}),
    "2 exp(-t/0.6)": ("radial", "exponential", lambda t: 2 * np.exp(-t / 0.6), {"A": 2, "L": 0.6}),
    "exp(-t²/8)": ("causal", "Gaussian", lambda t: np.exp(-(t**2) / 8), {"A": 1, "L": 2}),
    "3 exp(-t²/2)": ("radial", "Gaussian", lambda t: 3 * np.exp(-(t**2) / 2), {"A": 3, "L": 1}),
    "t^-1.5": ("radial", "power law", lambda t: t**-1.5, {"A": 1, "p": 1.5}),
    "Gamma, k = 3, L = 0.8": ("causal", "Gamma", lambda t: 2 * gamma(t, 3, 0.8), {"A": 2, "k": 3, "L": 0.8}),
    "exp(-t/2) cos 3t": (
        "causal",
        "damped cosine",
        lambda t: np.exp(-t / 2) * np.cos(3 * t),
        {"A": 1, "B": 0, "L": 2, "ω": 3},
    ),
    "1 for t < 3.3": ("radial", "constant on a ball", lambda t: 1.0 * (t < 3.3), {"A": 1, "δ": 3.3}),
    "1/t for t < 4": ("radial", "peridynamic, 1/t", lambda t: (t < 4) / t, {"A": 1, "δ": 4}),
    "1 - t/5": ("radial", "peridynamic, conical", lambda t: np.maximum(1 - t / 5, 0), {"A": 1, "δ": 5}),
    "t^-1.5 exp(-t/2)": (
        "radial",
        "tempered fractional",
        lambda t: t**-1.5 * np.exp(-t / 2),
        {"A": 1, "α": 0.5, "L": 2},
    ),
    "exp(-t/0.3) + 0.3 exp(-t/3)": (
        "causal",
        "exponential + exponential",
        lambda t: np.exp(-t / 0.3) + 0.3 * np.exp(-t / 3),
        {"A": 1, "L1": 0.3, "B": 0.3, "L2": 3},
    ),
}

NONE: dict[str, tuple[str, Shape]] = {
    "a peak at 6": ("causal", lambda t: np.exp(-((t - 6) ** 2) / 0.5)),
    "sin(t²) exp(-t/3)": ("causal", lambda t: np.sin(t**2) * np.exp(-t / 3)),
    "two peaks": ("radial", lambda t: np.exp(-((t - 2) ** 2)) - np.exp(-((t - 5) ** 2))),
}


def inputs(x: np.ndarray, seed: int) -> np.ndarray:
    """Two rough inputs: twenty waves each, of random length and phase."""
    rng = np.random.default_rng([SEED, seed])
    k, phase, size = rng.uniform(0.2, 6, (2, 20, 1)), rng.uniform(0, 6.3, (2, 20, 1)), rng.normal(size=(2, 20, 1))
    return (size * np.sin(k * x + phase)).sum(axis=1)


def system(operator: SampledOperator, shape: Shape, seed: int, pairs: int = PAIRS, noise: float = NOISE) -> Context:
    """Pairs at random places; f by the midpoint rule on the finer mesh."""
    fine = STEP / FINER
    samples = 3 * COUNT
    x = STEP * np.arange(samples)
    rng = np.random.default_rng([SEED, seed, 1])
    reached = np.nonzero(operator.reached(samples))[0]
    rows, points = rng.integers(0, 2, pairs), rng.choice(reached, pairs, replace=False)
    tokens = operator.tokens_at(inputs(x, seed), rows, points)
    t = fine * (np.arange(COUNT * FINER) + 0.5)
    at = x[points][:, None]
    u = [np.array([inputs(value, seed)[row] for value, row in zip(where, rows, strict=True)]) for where in (at - t, at)]
    if isinstance(operator, Radial):
        ahead = np.array([inputs(value, seed)[row] for value, row in zip(at + t, rows, strict=True)])
        u[0] = u[0] + ahead - 2 * u[1]
    f = fine * u[0] @ shape(t)
    f = f + noise * np.sqrt(np.mean(f**2)) * rng.normal(size=pairs)
    return Context(
        tokens.T.contiguous(), torch.from_numpy(f)[None], operator.grid, grids.point(), operator=operator.name
    )


def shipped() -> ProbabilisticMap:
    model, _ = load_model("kernel1d")
    assert isinstance(model, ProbabilisticMap)
    return model


def operator_of(name: str) -> SampledOperator:
    return Radial(STEP, COUNT) if name == "radial" else Convolution(STEP, COUNT)


def known(first_seed: int = 0) -> dict:
    model, results = shipped(), {}
    for seed, (name, (kind, family, shape, truth)) in enumerate(KNOWN.items(), first_seed):
        context = system(operator_of(kind), shape, seed)
        found = closed_form(context, model.posterior(context))
        first = found.laws[0]
        own = next((law for law in found.laws if law.family == family), None)
        values = {} if own is None else own.parameters
        results[name] = {
            "family": family,
            "first": first.family,
            "second": found.laws[1].family,
            "fits": found.best is not None,
            "log_evidence_over_second": first.log_evidence - found.laws[1].log_evidence,
            "log_evidence_over_no_law": first.log_evidence - found.log_evidence,
            "standardised_errors": {key: (v.value - truth[key]) / v.error for key, v in values.items()},
            "parameters": {key: [v.value, v.error, truth[key]] for key, v in values.items()},
        }
    return results


def none() -> dict:
    model, results = shipped(), {}
    for seed, (name, (kind, shape)) in enumerate(NONE.items()):
        context = system(operator_of(kind), shape, 100 + seed)
        found = closed_form(context, model.posterior(context))
        first = found.laws[0]
        results[name] = {
            "first": first.family,
            "fits": found.best is not None,
            "log_evidence_over_no_law": first.log_evidence - found.log_evidence,
        }
    return results


PARTS = {"known": known, "fresh": lambda: known(500), "none": none}

if __name__ == "__main__":
    run_parts("laws.py", RESULTS / "laws", PARTS, seed=SEED)
