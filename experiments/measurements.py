"""Measurements as they are: outliers, an offset, errors that go on in time, two inputs, groundwater.

    python experiments/measurements.py [outliers | offset | in-time | two-inputs | responses | groundwater]

Each part writes `experiments/results/measurements/NAME.json`. `groundwater` reads obs.csv, rain.csv and evap.csv from
the directory KERNELMAP_GROUNDWATER. Nothing was chosen on these seeds, except where docs/time-series.md says so.
"""

import csv
import math
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from laws import KNOWN, gamma, operator_of, shipped, system
from measured import RESULTS
from parts import run_parts

from kernelmap.cli.main import run
from kernelmap.core import Context
from kernelmap.core.metrics import coverage, exploration_measure, kernel_error
from kernelmap.discovery import discover
from kernelmap.io import load_discovery, read_measurements
from kernelmap.io.series import series_context
from kernelmap.paper.benchmarks.gaussian_process import matern_posterior

SEED, CONTEXTS = 0, 8
FIRST = {"outliers": 3000, "offset": 3100, "responses": 3200}
"""Seeds of the systems of each part; those of `laws.py` and of the docs are smaller."""

LAWS = [(kind, shape) for kind, _, shape, _ in KNOWN.values()]


def truth_of(shape, context: Context) -> torch.Tensor:
    return torch.from_numpy(np.asarray(shape(context.y.points[:, 0].numpy()), dtype=np.float64))[None]


def error(mean: torch.Tensor, truth: torch.Tensor, context: Context) -> float:
    """In L2(rho)."""
    return float(kernel_error(mean, truth, exploration_measure(context.U.mT, context.y), context.y))


def outliers() -> dict:
    """One of 100 pairs off by 100 or 1e6 standard deviations, or ten that have responses of their own."""
    model, results = shipped(), {}
    for i in range(CONTEXTS):
        kind, shape = LAWS[i]
        context = system(operator_of(kind), shape, FIRST["outliers"] + i)
        truth, rng = truth_of(shape, context), np.random.default_rng([SEED, i])
        sigma = 0.01 * float(context.F.square().mean().sqrt())
        clean = model.posterior(context)
        rows = {"clean": {"error": error(clean.mean, truth, context), "named": len(clean.outliers)}}
        for name, count in (("100", 1), ("1e6", 1), ("ten", 10)):
            wrong = rng.choice(context.d, count, replace=False)
            F = context.F.clone()
            F[0, wrong] = (
                100 * sigma * torch.from_numpy(rng.normal(size=10)) if count > 1 else F[0, wrong] + float(name) * sigma
            )
            found = model.posterior(replace(context, F=F))
            far = set(((F - context.F)[0].abs() > 10 * sigma).nonzero()[:, 0].tolist())
            rows[name] = {
                "error": error(found.mean, truth, context),
                "missed": len(far - set(found.outliers)),
                "false": len(set(found.outliers) - set(wrong.tolist())),
            }
        results[list(KNOWN)[i]] = rows
    return results


def offset() -> dict:
    """An offset of 0.3 rms of f, asked for, and the error with and without it."""
    model, results = shipped(), {}
    for i in range(CONTEXTS):
        kind, shape = LAWS[i]
        context = system(operator_of(kind), shape, FIRST["offset"] + i)
        truth, shift = truth_of(shape, context), 0.3 * float(context.F.square().mean().sqrt())
        moved = replace(context, F=context.F + shift)
        found = model.posterior(replace(moved, unknown=("offset",)))
        value, std = found.nuisance["offset"]
        results[list(KNOWN)[i]] = {
            "clean": error(model.posterior(context).mean, truth, context),
            "found": error(found.mean, truth, context),
            "not_asked": error(model.posterior(moved).mean, truth, context),
            "standardised": (value - shift) / std,
        }
    return results


def series(seed: int, samples: int, kernels: list[np.ndarray], noise: float, tau: float = 0.0) -> dict:
    """Inputs of bursts and calm, responses by the trapezoidal rule, errors white or AR(1); memory of 40."""
    rng = np.random.default_rng([SEED, seed])
    u = rng.gamma(0.6, 1.5, size=(len(kernels), samples + 40))
    f = np.sum([np.convolve(row, halved(K))[: samples + 40] for row, K in zip(u, kernels, strict=True)], axis=0)
    e = rng.normal(size=samples + 40)
    phi = math.exp(-1 / tau) if tau else 0.0
    for j in range(1, len(e)):
        e[j] = phi * e[j - 1] + math.sqrt(1 - phi**2) * e[j]
    f = f + noise * f[40:].std() * e
    return {"t": np.arange(samples + 40.0), "u": u, "f": f, "radius": np.asarray(40.0)}


def halved(kernel: np.ndarray) -> np.ndarray:
    return kernel * np.where(np.isin(np.arange(len(kernel)), (0, len(kernel) - 1)), 0.5, 1.0)


S = np.arange(41.0)
EXPONENTIAL, DELAYED = np.exp(-S / 5), 6 * gamma(S, 3, 4)


def in_time() -> dict:
    """AR(1) errors with tau of 10 samples, 30 % of f: the second half predicted from the first, AR(1) and white."""
    model, results = shipped(), {}
    for i in range(CONTEXTS):
        context, _ = series_context(series(4100 + i, 400, [EXPONENTIAL], 0.3, 10.0))
        first, second = context.select(torch.arange(200)), context.select(torch.arange(200, context.d))
        truth = torch.from_numpy(EXPONENTIAL)[None]
        rho = exploration_measure(first.U.mT, first.y)
        row = {}
        for name, used in (("ar1", first), ("white", replace(first, places=None, unknown=("offset",)))):
            found = model.posterior(used)
            mean, std = found.predict(second.U)
            row[name] = {
                "error_time": found.error_time,
                "predictive_coverage": float(((mean - second.F).abs() <= 1.96 * std).double().mean()),
                "kernel_coverage": float(coverage(found.mean, found.std, truth, rho, first.y)),
                "error": error(found.mean, truth, first),
            }
        results[str(i)] = row
    return results


def two_inputs() -> dict:
    """Exponential and delayed Gamma responses, 200 samples, 3 % noise; and inputs that are proportional."""
    model, results = shipped(), {}
    for i in range(CONTEXTS // 2):
        context, _ = series_context(series(5000 + i, 200, [EXPONENTIAL, DELAYED], 0.03))
        start = time.perf_counter()
        found = model.posterior(context)
        seconds = time.perf_counter() - start
        rows: dict[str, Any] = {"seconds": round(seconds, 1)}
        mean, std = (values[0].reshape(2, -1) for values in (found.mean, found.std))
        for name, K, own, bar in zip(("exponential", "gamma"), (EXPONENTIAL, DELAYED), mean, std, strict=True):
            off = own - torch.from_numpy(K)
            rows[name] = {
                "error": float(off.norm()) / float(np.linalg.norm(K)),
                "coverage": float((off.abs() <= 1.96 * bar).double().mean()),
            }
        results[str(i)] = rows
    entries = series(5100, 200, [EXPONENTIAL, DELAYED], 0.03)
    entries["u"][1] = 2 * entries["u"][0]
    said = discover(model, series_context(entries)[0]).diagnostics
    results["proportional"] = {"diagnostic": next((d.seen for d in said if "go together" in d.seen), None)}
    return results


def responses() -> dict:
    """Convolution kernels from 100 pairs with 1 % noise, beside a Matern process."""
    model, results = shipped(), {}
    shapes = {
        "exponential": lambda t: np.exp(-t / 1.5),
        "delayed Gamma": lambda t: 2 * gamma(t, 3, 0.8),
        "damped cosine": lambda t: np.exp(-t / 2) * np.cos(3 * t),
    }
    for k, (name, shape) in enumerate(shapes.items()):
        for i in range(CONTEXTS // 2):
            context = system(operator_of("causal"), shape, FIRST["responses"] + 10 * k + i)
            truth = truth_of(shape, context)
            process = max((matern_posterior(context, nu) for nu in (1.5, 2.5)), key=lambda p: p.log_evidence)
            results[f"{name} {i}"] = {
                "kernel1d": error(model.posterior(context).mean, truth, context),
                "gaussian_process": error(torch.from_numpy(process.mean)[None], truth, context),
            }
    return results


def groundwater() -> dict:
    """Every tenth head of the first half, rain and evaporation; the second half predicted, by the commands alone."""
    t, u, f, known = heads(Path(os.environ["KERNELMAP_GROUNDWATER"]))
    half = len(known) // 2
    measured = np.full(len(f), np.nan)
    measured[known[:half:10]] = f[known[:half:10]]
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory)
        series = {"operator": "convolution", "t": t, "u": u}
        np.savez(out / "head.npz", **series, f=measured, radius=365.0)
        start = time.perf_counter()
        assert run(["discover", str(out / "head.npz"), "--out", str(out / "found")]) == 0
        seconds = time.perf_counter() - start
        assert (
            run(["predict", str(out / "found/discovery.h5"), str(out / "head.npz"), "--out", str(out / "p.npz")]) == 0
        )
        predicted, found = np.load(out / "p.npz"), load_discovery(out / "found/discovery.h5")
        context = read_measurements(out / "head.npz").context
    second = known[half:]
    mean, std, own = predicted["mean"][second], predicted["std"][second], f[second]
    K = found.kernel.values[0].reshape(2, -1) @ context.y.weights
    return {
        "pairs": context.d,
        "r2": 1 - float(((own - mean) ** 2).sum() / ((own - own.mean()) ** 2).sum()),
        "coverage": float((np.abs(own - mean) <= 1.96 * std).mean()),
        "error_time": found.posterior.error_time,
        "offset": found.posterior.nuisance["offset"],
        "integrals": {"rain": float(K[0]), "evaporation": float(K[1])},
        "seconds": round(seconds, 1),
    }


def heads(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Days, rain and evaporation, heads, and where these are known."""
    head, rain, evaporation = (column(folder / f"{name}.csv") for name in ("obs", "rain", "evap"))
    t = np.arange(max(min(rain), min(evaporation)), min(max(rain), max(evaporation)) + 1)
    # Rain is missing on 18 days, which the tables leave out: none fell.
    u = np.array([[values.get(day, 0.0) for day in t.tolist()] for values in (rain, evaporation)])
    f = np.array([head.get(day, np.nan) for day in t.tolist()])
    return t.astype("datetime64[D]"), u, f, np.flatnonzero(~np.isnan(f))


def column(path: Path) -> dict[int, float]:
    """Values by the number of their day."""
    with path.open(newline="") as file:
        rows = [row for row in list(csv.reader(file))[1:] if row[1]]
    return {int(np.datetime64(day[:10]).astype(np.int64)): float(value) for day, value, *_ in rows}


PARTS = {
    "outliers": outliers,
    "offset": offset,
    "in-time": in_time,
    "two-inputs": two_inputs,
    "responses": responses,
    "groundwater": groundwater,
}

if __name__ == "__main__":
    run_parts("measurements.py", RESULTS / "measurements", PARTS, seed=SEED)
