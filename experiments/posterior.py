"""The shipped model `radial` under test: unseen kernels, noise, other grids, and NAO's kernel as prior mean.

    python experiments/posterior.py [coverage|noise|grids|...]

Each part writes results/radial/PART.json; finished parts are made anew only when named.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from parts import run_parts
from torch import Tensor

from kernelmap.context import Context
from kernelmap.estimators import dartr, tikhonov
from kernelmap.evaluation import evaluate
from kernelmap.grids import Grid, from_points
from kernelmap.maps import PosteriorMap
from kernelmap.metrics import coverage, exploration_measure, kernel_error
from kernelmap.model import load_model
from kernelmap.problems.radial import RadialKernel, radial, radial_systems, two_waves
from kernelmap.problems.radial.kernels import cosine, polynomial, sine
from kernelmap.systems import SystemSet, strided_draws

RESULTS = Path(__file__).parent / "results" / "radial"
SEED = 20261118
SAMPLES = 6
UNRELATED = {
    "narrow Gaussian": lambda r: np.exp(-(r**2) / 0.72),
    "wide Gaussian": lambda r: np.exp(-(r**2) / 5.78),
    "Gaussian away from zero": lambda r: np.exp(-((r - 1.5) ** 2)),
    "exponential": lambda r: np.exp(-r),
    "damped cosine": lambda r: np.exp(-r) * np.cos(2 * r),
    "Lorentzian": lambda r: 1 / (1 + r**2),
    "Ricker": lambda r: (1 - r**2) * np.exp(-(r**2) / 2),
    "sech": lambda r: 1 / np.cosh(r),
    "sinc": lambda r: np.sinc(r / 2),
    "damped sine": lambda r: np.exp(-4.5 * r) * np.sin(5 * r),
}
"""Neither training nor test kernels."""

SPACINGS = (0.0125, 0.018, 0.022, 0.025, 0.03, 0.035, 0.04, 0.05)


def fresh_kernels(count: int) -> dict[str, RadialKernel]:
    """Random kernels of the three training families."""
    generator = torch.Generator().manual_seed(SEED)
    draws = torch.rand(count, 3, generator=generator).tolist()
    kernels = {}
    for i, (a, b, c) in enumerate(draws):
        kernels[f"sine {1 + 7 * a:.2f}"] = sine(1 + 7 * a, "released")
        kernels[f"cosine {6 * b:.2f}"] = cosine(6 * b, "released")
        kernels[f"polynomial {1 + int(7 * c)} + {1 + (i % 7)}"] = _sum(1 + int(7 * c), 1 + i % 7, a)
    return kernels


def _sum(first: int, second: int, weight: float) -> RadialKernel:
    p, q = polynomial(first, "released"), polynomial(second, "released")
    return RadialKernel(lambda r: weight * p.function(r) + (1 - weight) * q.function(r), p.support)


def unrelated_kernels() -> dict[str, RadialKernel]:
    return {name: RadialKernel(function, 11.0) for name, function in UNRELATED.items()}


def contexts(systems: SystemSet, index: int, d: int, most: int = SAMPLES) -> list[Context]:
    draws = strided_draws(systems.pairs, d)
    chosen = draws[torch.linspace(0, len(draws) - 1, min(most, len(draws))).long()]
    batch = systems.batch(chosen, torch.tensor([index]))
    return [Context(batch.U[i, 0], batch.F[i, 0], batch.y, batch.x) for i in range(len(chosen))]


def coverage_of_fresh_kernels(model: PosteriorMap) -> dict[str, Any]:
    """Kernel error and coverage of the band on random kernels of the training families."""
    systems = radial_systems(fresh_kernels(10), two_waves("released"))
    return {f"{d}": evaluate_few(model, systems, d) for d in (302, 100, 50, 30)}


def evaluate_few(model: PosteriorMap, systems: SystemSet, d: int, most: int = SAMPLES) -> dict[str, Any]:
    assert systems.kernels is not None
    rho = exploration_measure(systems.u[0], systems.y)
    results = {}
    for index, name in enumerate(systems.names):
        errors, covered = [], []
        for context in contexts(systems, index, d, most):
            kernel, std = posterior_kernel(model, context)
            errors.append(float(kernel_error(kernel, systems.kernels[index], rho, systems.y)))
            covered.append(float(coverage(kernel, std, systems.kernels[index], rho, systems.y)))
        results[name] = {"kernel_error": mean(errors), "coverage95": mean(covered)}
    return results


def left_out(model: PosteriorMap) -> dict[str, Any]:
    """Kernels that constants were chosen on: ten unlike any in training, and twelve between those of training."""
    generator = torch.Generator().manual_seed(4242)
    kernels = unrelated_kernels()
    for k in range(4):
        a, b, c = torch.rand(3, generator=generator).tolist()
        kernels[f"sine {1 + 7 * a:.2f}"] = sine(1 + 7 * a, "released")
        kernels[f"cosine {6 * b:.2f}"] = cosine(6 * b, "released")
        kernels[f"polynomial sum {k}"] = _sum(1 + int(7 * c), 1 + (3 * k) % 7, a)
    systems = radial_systems(kernels, two_waves("released"))
    return {f"{d}": evaluate_few(model, systems, d, most=3) for d in (302, 100, 50, 30)}


def noise_table(model: PosteriorMap) -> dict[str, Any]:
    """Kernel errors with noise on f, against the classical estimators and NAO (which takes d = 302 only)."""
    nao = load_model("nao-diverse")[0].double()
    test = radial("sine").test
    assert test.kernels is not None
    rho = exploration_measure(test.u[0], test.y)
    table: dict[str, Any] = {}
    for level in (0.0, 0.01, 0.05, 0.1):
        noisy = test.with_noise(level, SEED)
        for d in (302, 50):
            for index, name in enumerate(test.names):
                row: dict[str, list[float]] = {}
                for context in contexts(noisy, index, d):
                    kernel, std = posterior_kernel(model, context)
                    estimates = {"posterior": kernel, "dartr": dartr(context).kernel.values}
                    estimates["tikhonov"] = tikhonov(context).kernel.values
                    if d == 302:
                        with torch.no_grad():
                            estimates["nao"] = nao(context).values
                    for who, values in estimates.items():
                        row.setdefault(who, []).append(float(kernel_error(values, test.kernels[index], rho, test.y)))
                    inside = coverage(kernel, std, test.kernels[index], rho, test.y)
                    row.setdefault("coverage95", []).append(float(inside))
                table[f"{level} {d} {name}"] = {who: mean(values) for who, values in row.items()}
    return table


def other_grids(model: PosteriorMap) -> dict[str, Any]:
    """The kernel error at twice the spacing and on a graded grid, trained at dx = 0.0125."""
    test = radial("sine").test
    every = torch.arange(880)
    graded = torch.unique((torch.linspace(0, 1, 600) ** 1.5 * 879).long())
    weights = from_points(torch.cat([torch.zeros(1).double(), test.y.points[graded, 0]])).weights[1:]

    def at(radii: Tensor, weights: Tensor) -> SystemSet:
        y, kernels = Grid(test.y.points[radii], weights), test.kernels
        return replace(test, u=test.u[..., radii], y=y, kernels=None if kernels is None else kernels[..., radii])

    sets = {
        "dx": test,
        "2dx": radial("sine", dx=0.025).test,
        "2dx-radii": at(every[1::2], 2 * test.y.weights[1::2]),
        "graded": at(graded, weights),
    }
    results = {}
    for label, d in product(sets, (302, 100, 50, 30)):
        found = evaluate(model, sets[label], d)["systems"]
        results[f"{label} {d}"] = {name: values["kernel_error"] for name, values in found.items()}
    return results


def spacings(model: PosteriorMap) -> dict[str, Any]:
    """Kernels unlike any in training, on grids from the training grid's spacing to four times that."""
    kernels = unrelated_kernels()
    results: dict[str, Any] = {}
    for dx in SPACINGS:
        systems = radial_systems(kernels, two_waves("released"), dx=11 / round(11 / dx))
        for d in (302, 50):
            found = evaluate_few(model, systems, d, most=3)
            lowest, where = min((values["coverage95"], name) for name, values in found.items())
            results[f"{dx} {d}"] = {
                "kernel_error": float(np.exp(mean([np.log(values["kernel_error"]) for values in found.values()]))),
                "lowest_coverage95": lowest,
                "lowest_at": where,
            }
    return results


def nao_as_mean(model: PosteriorMap) -> dict[str, Any]:
    """NAO's kernel as prior mean, then conditioned on the same pairs."""
    nao = load_model("nao-diverse")[0].double()
    test = radial("sine").test
    assert test.kernels is not None
    rho = exploration_measure(test.u[0], test.y)
    results = {}
    for index, name in enumerate(test.names):
        row: dict[str, list[float]] = {"nao": [], "conditioned": [], "posterior": []}
        for context in contexts(test, index, 302):
            with torch.no_grad():
                first = nao(context)
                kernels = {"nao": first.values, "posterior": model(context).values}
                kernels["conditioned"] = model.conditioned(first, context).values
            for who, values in kernels.items():
                row[who].append(float(kernel_error(values, test.kernels[index], rho, test.y)))
        results[name] = {who: mean(values) for who, values in row.items()}
    return results


def test_systems(model: PosteriorMap) -> dict[str, Any]:
    """What `kernelmap evaluate radial radial --d D` gives."""
    return {f"{d}": evaluate(model, radial("sine").test, d) for d in (302, 100, 50, 30)}


def retrained(model: PosteriorMap) -> dict[str, Any]:
    """The model that the card's command has written to runs/radial, beside the shipped one."""
    other, about = load_model("runs/radial")
    assert isinstance(other, PosteriorMap)
    models = {"shipped": model, "retrained": other.double()}
    unrelated, test = radial_systems(unrelated_kernels(), two_waves("released")), radial("sine").test
    results: dict[str, Any] = {"training": {key: about[key] for key in ("command", "commit", "training")}}
    for d, (who, each) in product((302, 100, 50, 30), models.items()):
        errors = {name: values["kernel_error"] for name, values in evaluate(each, test, d)["systems"].items()}
        found = [values["kernel_error"] for values in evaluate_few(each, unrelated, d, most=3).values()]
        results[f"{who} {d}"] = errors | {"unrelated": float(np.exp(np.log(found).mean()))}
    return results


def posterior_kernel(model: PosteriorMap, context: Context) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        posterior = model.posterior(context)
        return posterior.kernel, model.standard_deviation(posterior)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


PARTS: dict[str, Callable[[PosteriorMap], dict[str, Any]]] = {
    "test": test_systems,
    "coverage": coverage_of_fresh_kernels,
    "left-out": left_out,
    "noise": noise_table,
    "grids": other_grids,
    "spacings": spacings,
    "nao-mean": nao_as_mean,
    "retrained": retrained,
}

if __name__ == "__main__":
    run_parts("posterior.py", RESULTS, PARTS, load_model("radial")[0].double(), seed=SEED)
