"""The shipped model `darcy` under test: the three tasks, another mesh, noise, and what tokens g[b] gain from b to p.

    python experiments/darcy.py [test|mesh|noise|b-to-p]

Each part writes results/darcy/PART.json; finished parts are made anew only when named.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from parts import run_parts

from kernelmap.core.context import Context
from kernelmap.core.kernel import Kernel
from kernelmap.estimators import tikhonov
from kernelmap.evaluation.evaluate import Estimated, errors
from kernelmap.io.models import load_model
from kernelmap.maps import KernelMap
from kernelmap.posterior.pointwise import pointwise
from kernelmap.problems.darcy import DarcyData, darcy
from kernelmap.problems.darcy.errors import errors_on_darcy
from kernelmap.problems.darcy.tokens import smoothness, with_tokens

RESULTS = Path(__file__).parent / "results" / "darcy"
FRESH = 1
"""Seed of microstructures and sources that nothing was chosen on."""


def test_systems(model: KernelMap) -> dict[str, Any]:
    """What `kernelmap evaluate darcy darcy --task TASK --d D` gives, and the same for fresh systems."""
    return {
        f"{task} {d} seed {seed}": errors_on_darcy(model, darcy(task, seed=seed), d)["systems"]["test"]
        for seed in (0, FRESH)
        for task in ("p-to-g", "g-to-p", "b-to-p")
        for d in (20, 50)
    }


def another_mesh(model: KernelMap) -> dict[str, Any]:
    """The weights trained on 21 x 21 nodes, used on 41 x 41."""
    return {
        f"{task} {d}": errors_on_darcy(model, few(darcy(task, 41)), d)["systems"]["test"]
        for task in ("p-to-g", "g-to-p")
        for d in (20, 50)
    }


def few(data: DarcyData, count: int = 3) -> DarcyData:
    """The first test systems: bands of 41 x 41 nodes have three million values each."""
    names = data.test.names[:count]
    b = None if data.b is None else data.b[:count]
    return replace(data, test=data.test.select(names), heldout=data.heldout.select(names), b=b)


def noise(model: KernelMap) -> dict[str, Any]:
    """Noise on the source that is measured, p-to-g."""
    results = {}
    data = darcy("p-to-g")
    for level in (0.01, 0.1):
        noisy = replace(data, test=data.test.with_noise(level, FRESH))
        for d in (20, 50):
            results[f"{level} {d}"] = errors_on_darcy(model, noisy, d)["systems"]["test"]
    return results


def from_permeability(model: KernelMap) -> dict[str, Any]:
    """Held-out errors from b to p: linear in b, and by tokens after more and more steps."""
    data = darcy("b-to-p")
    results: dict[str, Any] = {
        "b, Tikhonov": {f"{d}": _mean(errors(_tikhonov, data.test, d, data.heldout)) for d in (20, 50)},
        "b, best ridge": {
            f"{d}": min(_mean(errors(_ridge(10.0**power), data.test, d, data.heldout)) for power in range(-6, 2))
            for d in (20, 50)
        },
    }
    for steps in (0, 1, 2, 4, 8):
        tokens = with_tokens(data, steps)
        results[f"tokens, {steps} steps"] = {
            f"{d}": _mean(errors(_pointwise, tokens.test, d, tokens.heldout)) for d in (20, 50)
        }
    return results


def _ridge(share: float) -> Callable[[Context], Estimated]:
    """K w = F (Uᵀ U + λ)⁻¹ Uᵀ on b itself, with λ this share of the mean of Uᵀ U's diagonal.

    The best share over the held-out pairs is the floor of what is linear in b.
    """

    def estimate(contexts: Context) -> Estimated:
        gram = contexts.U.mT @ contexts.U
        level = share * gram.diagonal(dim1=-2, dim2=-1).mean(dim=-1)[..., None, None]
        values = contexts.F @ torch.linalg.solve(gram + level * torch.eye(gram.shape[-1]).to(gram), contexts.U.mT)
        return Estimated(Kernel(values / contexts.y.value_weights, contexts.y, contexts.x), None)

    return estimate


def _tikhonov(contexts: Context) -> Estimated:
    """With its parameter by cross-validation, one system at a time. The constant 1 is in the span of b's values."""
    systems = [Context(u[0], f[0], contexts.y, contexts.x) for u, f in zip(contexts.U, contexts.F, strict=True)]
    values = torch.stack([tikhonov(each, "l2").kernel.values for each in systems])
    return Estimated(Kernel(values[:, None], contexts.y, contexts.x), None)


def _pointwise(contexts: Context) -> Estimated:
    return Estimated(pointwise(contexts, smoothness().tolist()).kernel, None)


def _mean(found: dict[str, dict[str, float | None]]) -> float:
    return sum(each["operator_error_heldout"] or 0 for each in found.values()) / len(found)


PARTS: dict[str, Callable[[KernelMap], dict[str, Any]]] = {
    "test": test_systems,
    "mesh": another_mesh,
    "noise": noise,
    "b-to-p": from_permeability,
}

if __name__ == "__main__":
    run_parts("darcy.py", RESULTS, PARTS, load_model("darcy")[0].double(), seed=FRESH)
