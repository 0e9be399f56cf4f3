"""Discovery by the posterior map against DARTR as published, and against the bare algebra it is made of."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.linalg import eigh

from kernelmap import grids
from kernelmap.benchmarks.processes import in_process, peak_memory_gb, serve, shortest
from kernelmap.context import Context
from kernelmap.estimators.spectral import metric_weights
from kernelmap.maps import PosteriorMap
from kernelmap.model import load_model
from kernelmap.progress import progress

ROUNDS, LARGEST_DARTR = 3, 880
OTHERS = [(880, 30), (880, 100), (880, 1000), (2500, 302), (7000, 302), (20_000, 302)]


def bench_discover(repeats: int) -> dict[str, Any]:
    cases = [(threads, 880, 302) for threads in sorted({1, os.cpu_count() or 1})]
    cases += [(1, n, d) for n, d in OTHERS]
    return {"cases": [in_process(__name__, *case, repeats) for case in progress(cases, "Benchmark")]}


def measure(n: int, d: int, repeats: int) -> dict[str, Any]:
    model, _ = load_model("radial")
    assert isinstance(model, PosteriorMap)
    model, context = model.double(), example(n, d)

    def discover() -> None:
        with torch.no_grad():
            model.standard_deviation(model.posterior(context))

    def discover_on_a_new_grid() -> None:
        model.prior.last = None
        discover()

    discover()
    case: dict[str, Any] = {"n": n, "d": d, "peak_memory_gb": peak_memory_gb(), "dartr_s": None, "ratio": None}
    runs: dict[str, Callable[[], object]] = {
        "new_grid_s": discover_on_a_new_grid,
        "posterior_s": discover,
        "bare_s": lambda: bare_algebra(model, context),
    }
    if n <= LARGEST_DARTR:
        runs["dartr_s"] = lambda: published_dartr(context)
    # In turns: the speed of a machine drifts, and the ratios should not.
    rounds = [{name: shortest(run, repeats) for name, run in runs.items()} for _ in range(ROUNDS)]
    case |= {name: min(times[name] for times in rounds) for name in runs}
    if case["dartr_s"] is not None:
        case["ratio"] = case["dartr_s"] / case["posterior_s"]
    return case | {"over_bare": case["posterior_s"] / case["bare_s"]}


def example(n: int, d: int) -> Context:
    grid = grids.radii(11 / n, n)
    r = grid.points
    U = torch.cos(r * torch.linspace(0.3, 12, d, dtype=torch.float64)) - 1
    F = (torch.exp(-2 * r.mT) * torch.sin(4 * r.mT) * grid.weights) @ U
    return Context(U, F, grid, grids.point())


def bare_algebra(model: PosteriorMap, context: Context) -> None:
    """The products and factorisations of a discovery from exact data, and nothing else."""
    with torch.no_grad():
        prior = model.prior_on(context.y)
        phi, R, Q = prior.phi, prior.phi.shape[1], model.prior.options.components
        A = phi.mT @ context.U
        for rows in (prior.variance[:Q], prior.variance[:1]):  # with the jumps of the tokens, in either pass
            torch.matmul(rows, context.U)
        eye = torch.eye(R, dtype=phi.dtype)
        factors = [torch.linalg.cholesky(gram) for gram in (A @ A.mT + eye, A @ A.mT + eye) for _ in range(Q)]
        torch.matmul(torch.linalg.solve_triangular(factors[-1], eye, upper=False).to(prior.rows), prior.rows)


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
        share = lam**2 / (lam**2 + t)
        residual = F @ F - explained.sum() + ((1 - share) ** 2 * explained).sum()
        score = residual / (len(F) - share.sum() + 1e-9) ** 2
        best = min(best, (score, lam * beta / (lam**2 + t)), key=lambda pair: pair[0])
    return V[:, kept] @ best[1]


if __name__ == "__main__":
    serve(measure)
