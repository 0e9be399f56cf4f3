"""The trained NAO rows of Table 3 put to two questions: another mesh, and the microstructure in its own kernel.

    python experiments/nao_darcy.py [mesh-20|mesh-50|microstructure]

Needs the runs of `kernelmap reproduce table3 --out experiments/results/paper`; writes results/darcy/nao-PART.json.
"""

import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from measured import RESULTS
from torch import Tensor

from kernelmap.core.files import write_json
from kernelmap.core.grids import Grid
from kernelmap.core.provenance import provenance
from kernelmap.core.systems import strided_draws
from kernelmap.evaluation.microstructure import interior, otsu
from kernelmap.io.models import load_model
from kernelmap.problems.darcy import DarcyData, darcy
from kernelmap.problems.darcy.errors import errors_on_darcy

RUNS = RESULTS / "paper" / "runs"
COARSE, FINE = 21, 41
D = 50


def another_mesh(d: int, dk: int) -> dict[str, Any]:
    """Trained on 21 x 21 nodes, evaluated on those and on 41 x 41, with the same media and sources.

    Every node has the weight of a cell, those of the boundary too: a sum over 21 x 21 nodes is the integral and half a
    step times that over the boundary. The finer mesh is given with weights of its cells, and with that measure.
    """
    model = load_model(RUNS / f"nao-{d}-{dk}-g-to-p")[0].double()
    coarse, fine = (darcy("g-to-p", n, truth=False) for n in (COARSE, FINE))
    same = measure_of_training(fine.test.y)
    cases = {"21, as trained": coarse, "41, weights of cells": fine, "41, measure of training": on(fine, same)}
    return {f"d = {d}, {name}": errors_on_darcy(model, data, d)["systems"]["test"] for name, data in cases.items()}


def measure_of_training(fine: Grid) -> Grid:
    """Weights of the trapezoidal rule, and half a coarse step for every end."""
    weights = torch.full((FINE,), 1 / (FINE - 1), dtype=torch.float64)
    weights[[0, -1]] = 0.5 / (FINE - 1) + 0.5 / (COARSE - 1)
    return Grid(fine.points, torch.outer(weights, weights).flatten())


def on(data: DarcyData, grid: Grid) -> DarcyData:
    test, heldout = (replace(part, y=grid, x=grid) for part in (data.test, data.heldout))
    return replace(data, test=test, heldout=heldout)


@torch.no_grad()
def microstructures() -> dict[str, Any]:
    """Fraction of interior nodes whose phase is found, mean over test systems and their contexts of 50 pairs."""
    results: dict[str, list[float]] = {}
    for task in ("g-to-p", "p-to-g"):
        if not (RUNS / f"nao-50-40-{task}").exists():
            continue
        model = load_model(RUNS / f"nao-50-40-{task}")[0].double()
        data = darcy(task)
        assert data.b is not None
        inside = interior(data.test.x)
        for system, b in enumerate(data.b):
            stiff = (b > b.mean()).flatten()[inside]
            results.setdefault("larger phase", []).append(
                max(float(stiff.double().mean()), 1 - float(stiff.double().mean()))
            )
            context = data.test.batch(strided_draws(data.test.pairs, D), torch.tensor([system]))
            kernels = model(context).values[:, 0][:, inside][:, :, inside]
            for K in kernels:
                for reading, strength in readings(K, task).items():
                    found = strength > otsu(strength)
                    results.setdefault(f"{task}: {reading}", []).append(float((found == stiff).double().mean()))
    return {name: sum(values) / len(values) for name, values in results.items()}


def readings(K: Float[Tensor, "n n"], task: str) -> dict[str, Float[Tensor, " n"]]:
    """What is large where the medium is permeable: sums over a stiffness, or one over those of a Green's function.

    The inverse is taken on the 40 directions that a kernel of rank dk = 40 has.
    """
    sign = -1 if task == "g-to-p" else 1
    inverse = torch.linalg.pinv(K, rtol=1e-10)
    return {
        "Σ|K|": sign * K.abs().sum(dim=1),
        "ΣK": sign * K.sum(dim=1),
        "diagonal": sign * K.diagonal(),
        "Σ|inverse|": -sign * inverse.abs().sum(dim=1),
        "diagonal of the inverse": -sign * inverse.diagonal(),
    }


PARTS = {
    "mesh-20": partial(another_mesh, 20, 20),
    "mesh-50": partial(another_mesh, 50, 40),
    "microstructure": microstructures,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        start = time.process_time()
        made = {"results": PARTS[part](), "seed": 0, "command": f"python experiments/nao_darcy.py {part}"}
        made |= {"commit": provenance()["commit"], "seconds": round(time.process_time() - start, 1)}
        write_json(Path(RESULTS / "darcy" / f"nao-{part}.json"), made)
