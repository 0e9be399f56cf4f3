"""Hyperelastic specimens: the numbers of the shipped model `mechanics`, the error no linear map gets below, and tests.

    python experiments/mechanics.py [prior|floor|test|noise]

Each part writes results/mechanics/PART.json; finished parts are made anew only when named. `prior` also writes the
model; it looks at training specimens only.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from parts import run_parts

from kernelmap.files import write_json
from kernelmap.maps import ContextShape, MaterialPosteriorMap, MediumOptions, MediumPosterior
from kernelmap.metrics import operator_error
from kernelmap.model import load_model, save_model, shipped_directory
from kernelmap.problems.mechanics import Split, mnist
from kernelmap.problems.mechanics.images import modulus
from kernelmap.progress import progress
from kernelmap.provenance import provenance
from kernelmap.reproduce.linear_floor import linear_floor
from kernelmap.reproduce.mechanics import errors_on_mechanics, solved, specimens_of
from kernelmap.systems import SystemSet

RESULTS = Path(__file__).parent / "results" / "mechanics"
SPECIMENS: dict[Split, int] = {"id": 2, "ood": 1}


def prior() -> dict[str, Any]:
    """The five numbers, from pairs of training specimens: the first zero, one, two, three and four.

    Mean, deviation and length by the moments of the stiffnesses found. Then, on other loads of two of the specimens,
    Poisson's ratio with the smallest error, and the smallest noise whose bands hold 95 % of the displacements.
    """
    systems, others = solved(mnist().first(5), loads=50)
    model = MaterialPosteriorMap(ContextShape.of(_pairs(systems, 0)), MediumOptions()).double()
    _match(model, systems, [model.posterior(_pairs(systems, index)) for index in progress(range(5), "Specimens")])
    tried = {}
    for name, values in (("poisson", (0.28, 0.3, 0.32)), ("noise", (0.001, 0.002, 0.003, 0.005, 0.01))):
        parameter = getattr(model.prior, name)
        for value in progress(values, name):
            parameter.data.fill_(value)
            tried[f"{name} {value}"] = _heldout(model, systems, others)
        by = {value: tried[f"{name} {value}"] for value in values}
        honest = [value for value in values if by[value]["coverage95"] >= 0.95] or values[-1:]
        parameter.data.fill_(min(values, key=lambda v: by[v]["error"]) if name == "poisson" else honest[0])
    about = {"problem": "mechanics", "specimens": list(systems.names), "pairs": systems.pairs}
    save_model(shipped_directory() / "mechanics", model, about | provenance())
    return {"heldout": tried, "chosen": _numbers(model)}


def _match(model: MaterialPosteriorMap, systems: SystemSet, found: list[MediumPosterior]) -> None:
    """Set mean, deviation and length to the moments of the stiffnesses found."""
    fields = []
    for index, posterior in enumerate(found):
        context, medium = _pairs(systems, index), posterior.medium
        uniform = torch.linalg.inv(medium.stiffness(torch.ones(medium.count, dtype=torch.float64)))
        strong = (uniform @ medium.mass @ context.U).norm(dim=0) / context.F.norm(dim=0)
        fields.append((posterior.theta - strong.median().log()).reshape(medium.cells))
    theta = torch.stack(fields)
    away = theta - theta.mean()
    beside = torch.cat([(away[:, 1:] * away[:, :-1]).flatten(), (away[:, :, 1:] * away[:, :, :-1]).flatten()])
    correlation = float(beside.mean() / away.square().mean())
    model.prior.mean.data.fill_(float(theta.mean()))
    model.prior.deviation.data.fill_(float(theta.std()))
    model.prior.length.data.fill_(-1 / max(theta.shape[1:]) / math.log(correlation))


def _numbers(model: MaterialPosteriorMap) -> dict[str, float]:
    return {name: float(value) for name, value in model.prior.state_dict().items()}


def _pairs(systems: SystemSet, index: int) -> Any:
    batch = systems.batch(torch.arange(systems.pairs)[None], torch.tensor([index]))
    return type(batch)(batch.U[0, 0], batch.F[0, 0], batch.y, batch.x)


def _heldout(model: MaterialPosteriorMap, systems: SystemSet, others: SystemSet) -> dict[str, float]:
    """Error and coverage of predictions for other loads, the mean of the second and the third specimen."""
    errors, coverages = [], []
    for index in (1, 2):
        new = _pairs(others, index)
        mean, variance = model.posterior(_pairs(systems, index)).predict(new.U)
        errors.append(operator_error(mean, new.F, systems.x))
        moves = (new.F != 0).any(dim=-1)
        coverages.append(((mean - new.F).abs() <= 1.96 * variance.sqrt())[moves].double().mean())
    return {"error": float(torch.stack(errors).mean()), "coverage95": float(torch.stack(coverages).mean())}


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
        specimens, held_out = solved(specimens_of(split, count))
        for d in (40, 100):
            results[f"{split} {d}"] = errors_on_mechanics(model.double(), specimens, held_out, d)
    kept = {split: results[f"{split} 100"]["systems"]["test"] for split in SPECIMENS}
    about = {"model": "mechanics", "d": 100, "specimens": SPECIMENS, "command": "python experiments/mechanics.py test"}
    write_json(shipped_directory() / "mechanics" / "evaluation.json", {"systems": kept, **about})
    return results


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


PARTS: dict[str, Callable[[], dict[str, Any]]] = {"prior": prior, "floor": floor, "test": test, "noise": noise}

if __name__ == "__main__":
    run_parts("mechanics.py", RESULTS, PARTS, seed=0)
