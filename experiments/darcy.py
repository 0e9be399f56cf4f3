"""The shipped model `darcy` under test: the three tasks, another mesh, noise, and what tokens g[b] gain from b to p.

    python experiments/darcy.py [test|mesh|noise|b-to-p]

Each part writes results/darcy/PART.json; finished parts are made anew only when named.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from kernelmap.context import Context
from kernelmap.estimators import tikhonov
from kernelmap.evaluation import Estimated, errors
from kernelmap.kernel import Kernel
from kernelmap.maps import KernelMap
from kernelmap.maps.pointwise import pointwise
from kernelmap.model import load_model
from kernelmap.problems.darcy import darcy
from kernelmap.problems.darcy.tokens import smoothness, with_tokens
from kernelmap.progress import progress
from kernelmap.provenance import provenance
from kernelmap.reproduce.darcy import errors_on_darcy

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
    data = darcy("p-to-g", 41)
    return {f"p-to-g {d}": errors_on_darcy(model, data, d)["systems"]["test"] for d in (50, 20)}


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
        "b, Tikhonov": {f"{d}": _mean(errors(_ridge, data.test, d, data.heldout)) for d in (20, 50)}
    }
    for steps in (0, 1, 2, 4, 8):
        tokens = with_tokens(data, steps)
        results[f"tokens, {steps} steps"] = {
            f"{d}": _mean(errors(_pointwise, tokens.test, d, tokens.heldout)) for d in (20, 50)
        }
    return results


def _ridge(contexts: Context) -> Estimated:
    """Tikhonov on b itself, one system at a time. The constant 1 is in the span of b's two values."""
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
    model, _ = load_model("darcy")
    RESULTS.mkdir(parents=True, exist_ok=True)
    for part in progress(sys.argv[1:] or [name for name in PARTS if not (RESULTS / f"{name}.json").exists()], "Parts"):
        start = time.perf_counter()
        made = {"results": PARTS[part](model.double()), "command": f"python experiments/darcy.py {part}"}
        made |= {"commit": provenance()["commit"], "seconds": round(time.perf_counter() - start, 1)}
        (RESULTS / f"{part}.json").write_text(json.dumps(made, indent=1) + "\n")
