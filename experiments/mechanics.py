"""Hyperelastic specimens: the numbers of the shipped model `mechanics`, the error no linear map gets below, and tests.

    python experiments/mechanics.py [floor|test|noise]

Each part writes results/mechanics/PART.json; finished parts are made anew only when named.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from parts import run_parts

from kernelmap.core.files import write_json
from kernelmap.core.metrics import operator_error
from kernelmap.core.systems import SystemSet
from kernelmap.io.models import load_model, shipped_directory
from kernelmap.paper.linear_floor import linear_floor
from kernelmap.posterior.elastic.map import MaterialPosteriorMap
from kernelmap.problems.mechanics import Split
from kernelmap.problems.mechanics.errors import errors_on_mechanics, solved, specimens_of
from kernelmap.problems.mechanics.images import modulus

RESULTS = Path(__file__).parent / "results" / "mechanics"
SPECIMENS: dict[Split, int] = {"id": 2, "ood": 1}


def floor() -> dict[str, Any]:
    """The error of the best linear operator, of a few test specimens each by itself, on loads it was not fitted to."""
    results = {}
    for split, count in SPECIMENS.items():
        specimens = specimens_of(split, count)
        results[split] = dict(zip(specimens.names, map(linear_floor, specimens.images), strict=True))
    return results


def test() -> dict[str, Any]:
    """What `kernelmap evaluate mechanics mechanics --split SPLIT --d D --specimens S` gives; the model keeps a part."""
    model, _ = load_model("mechanics")
    results = {}
    for split, count in SPECIMENS.items():
        specimens, heldout = solved(specimens_of(split, count))
        for d in (40, 100):
            results[f"{split} {d}"] = errors_on_mechanics(model.double(), specimens, heldout, d)
    kept = {split: results[f"{split} 100"]["systems"]["test"] for split in SPECIMENS}
    about = {"model": "mechanics", "d": 100, "specimens": SPECIMENS, "command": "python experiments/mechanics.py test"}
    write_json(shipped_directory() / "mechanics" / "evaluation.json", {"systems": kept, **about})
    return results


def _pairs(systems: SystemSet, index: int) -> Any:
    batch = systems.batch(torch.arange(systems.pairs)[None], torch.tensor([index]))
    return type(batch)(batch.U[0, 0], batch.F[0, 0], batch.y, batch.x)


def noise() -> dict[str, Any]:
    """Noise on the displacements of the first test specimen, 40 pairs: predictions, stiffnesses, and their bands."""
    model, _ = load_model("mechanics")
    assert isinstance(model, MaterialPosteriorMap)
    specimens = specimens_of("id", 1)
    systems, others = solved(specimens)
    new = _pairs(others, 0)
    truth = torch.from_numpy(np.log10(modulus(specimens.images[0]))).flatten()
    results = {}
    for level in (0.0, 0.01, 0.05, 0.2):
        context = _pairs(systems.with_noise(level, seed=0), 0).select(torch.arange(40))
        posterior = model.double().posterior(context)
        away = posterior.hidden.values - truth
        results[f"{level}"] = {
            "operator_error_heldout": float(operator_error(posterior.respond(new.U), new.F, systems.x)),
            "decades": float(away.abs().mean()),
            "coverage95": float((away.abs() <= 1.96 * posterior.hidden.std).double().mean()),
        }
    return results


PARTS: dict[str, Callable[[], dict[str, Any]]] = {"floor": floor, "test": test, "noise": noise}

if __name__ == "__main__":
    run_parts("mechanics.py", RESULTS, PARTS, seed=0)
