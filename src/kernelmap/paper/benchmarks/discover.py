"""Discovery by `kernel1d`, alone and with its check, beside DARTR as published."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.linalg import eigh

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.progress import progress
from kernelmap.discovery import discover
from kernelmap.estimators.spectral import metric_weights
from kernelmap.io.models import load_model
from kernelmap.maps import ProbabilisticMap
from kernelmap.paper.benchmarks.processes import in_process, peak_memory_gb, serve, shortest

ROUNDS, LARGEST_DARTR = 3, 880
OTHERS = [(880, 30), (880, 100), (880, 1000), (2500, 302), (7000, 302), (20_000, 302), (440, 20_000)]


def bench_discover(repeats: int) -> dict[str, Any]:
    cases = [(threads, 880, 302) for threads in sorted({1, os.cpu_count() or 1})]
    cases += [(1, n, d) for n, d in OTHERS]
    return {"cases": [in_process(__name__, *case, repeats) for case in progress(cases, "Benchmark")]}


def measure(n: int, d: int, repeats: int) -> dict[str, Any]:
    model, context = load_model("kernel1d")[0], example(n, d)
    assert isinstance(model, ProbabilisticMap)
    runs: dict[str, Callable[[], object]] = {
        "posterior_s": lambda: model.posterior(context).std,
        "discover_s": lambda: discover(model, context),
    }
    case: dict[str, Any] = {"n": n, "d": d, "dartr_s": None}
    if n <= LARGEST_DARTR:
        runs["dartr_s"] = lambda: published_dartr(context)
    # In turns: the speed of a machine drifts, and the ratios should not.
    rounds = [{name: shortest(run, repeats) for name, run in runs.items()} for _ in range(ROUNDS)]
    case |= {name: min(times[name] for times in rounds) for name in runs}
    return case | {"peak_memory_gb": peak_memory_gb()}


def example(n: int, d: int) -> Context:
    grid = grids.radii(11 / n, n)
    r = grid.points
    U = torch.cos(r * torch.linspace(0.3, 12, d, dtype=torch.float64)) - 1
    F = (torch.exp(-2 * r.mT) * torch.sin(4 * r.mT) * grid.weights) @ U
    return Context(U, F, grid, grids.point())


def published_dartr(context: Context, steps: int = 100) -> np.ndarray:
    """A V = B V Λ with N x N matrices, coefficients λ_i β_i / (λ_i² + λ), and λ by GCV on a grid."""
    U = (context.U * context.y.weights[:, None]).numpy()
    F = context.F[0].numpy()
    B = np.diag(metric_weights(context, "rho").numpy())
    eigenvalues, V = eigh(U @ U.T, B)
    kept = eigenvalues > 1e-14 * eigenvalues[-1]
    lam, beta = eigenvalues[kept], V[:, kept].T @ (U @ F)
    explained = beta**2 / lam
    best = (np.inf, beta)
    for t in np.logspace(np.log10(lam[0] ** 2), np.log10(lam[-1] ** 2), steps):
        kept = lam**2 / (lam**2 + t)
        residual = F @ F - explained.sum() + ((1 - kept) ** 2 * explained).sum()
        score = residual / (len(F) - kept.sum() + 1e-9) ** 2
        best = min(best, (score, lam * beta / (lam**2 + t)), key=lambda pair: pair[0])
    return V[:, kept] @ best[1]


if __name__ == "__main__":
    serve(measure)
