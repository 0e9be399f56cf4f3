"""Every registered map on every registered problem that it can take: trained for a moment, judged by the problem."""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract import EXAMPLES, FACTS
from kernelmap.core.errors import InputError
from kernelmap.io import load_model
from kernelmap.maps import MAPS
from kernelmap.problems import PROBLEMS, Problem, TrainingData
from kernelmap.problems.darcy import data as flow
from kernelmap.problems.mechanics import Plan, bitmaps, generate
from kernelmap.training import Recipe, train

EXAMPLE = {
    "radial": "radial",
    "darcy": "source to pressure",
    "mechanics": "load to displacement",
    "own": "radial",
    "world": "radial",
}
"""The contract's context that is of the problem's kind."""

OPTIONS: dict[str, dict[str, Any]] = {
    "radial": {"dx": 0.5},
    "darcy": {"n": 7},
    "mechanics": {},
    "own": {},
    "world": {"systems": 2},
}
WORLD_MAPS = {"kernel1d", "integral"}
"""Systems of the world have grids of their own, which few maps can be trained on, or need no training for."""

D = 8


@pytest.fixture(scope="module", autouse=True)
def few_systems(tmp_path_factory):
    """Of Darcy flow, in a cache of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELMAP_CACHE", str(tmp_path_factory.mktemp("cache")))
        for name, few in {"TRAINING": 12, "TEST": 2, "PAIRS": 4 * D}.items():
            patch.setattr(flow, name, few)
        yield


@pytest.fixture(scope="module")
def specimens(tmp_path_factory) -> Path:
    images = np.random.default_rng(0).integers(0, 256, (12, 4, 4), dtype=np.uint8)
    path = tmp_path_factory.mktemp("mechanics") / "specimens.h5"
    generate(Plan(bitmaps(images), loads=28, elements="q1-4"), path, jobs=1)
    return path


@pytest.fixture(scope="module")
def systems(tmp_path_factory) -> Path:
    """A user's file, of kernels K(r)."""
    path, context = tmp_path_factory.mktemp("own") / "systems.npz", EXAMPLES["radial"](28, 1)
    y = context.y
    np.savez(path, y=y.points[:, 0], weights=y.weights, u=context.U[0].mT, f=context.F.mT)
    return path


def problem_of(name: str, specimens: Path, systems: Path) -> Problem:
    kind = PROBLEMS[name]
    if name == "own":
        return kind(data=systems)  # pyright: ignore
    data = {"data": specimens} if "data" in {field.name for field in fields(kind)} else {}  # pyright: ignore
    return kind(**OPTIONS[name], **data)


@pytest.fixture(scope="module")
def given(specimens, systems) -> Callable[[str], tuple[Problem, TrainingData]]:
    """A problem and its training data, generated once."""

    @cache
    def of(name: str) -> tuple[Problem, TrainingData]:
        problem = problem_of(name, specimens, systems)
        return problem, problem.training()

    return of


def test_every_problem_is_tried():
    assert set(EXAMPLE) == set(OPTIONS) == set(PROBLEMS.names)


@pytest.mark.parametrize("problem", sorted(EXAMPLE))
@pytest.mark.parametrize("name", sorted(FACTS))
def test_a_map_on_a_problem(name, problem, given, tmp_path):
    (of, data), kind = given(problem), MAPS[name]
    recipe = Recipe(epochs=1, batch=6, precision="float64", validation_systems=1, random_draws=True)
    options = kind.Options(**FACTS[name].options)

    def trained():
        train(name, options, data.systems, D, recipe, tmp_path / "model", about=data.about, draws=data.draws)
        return load_model(tmp_path / "model")[0]

    own_grids = problem == "world" and name not in WORLD_MAPS
    if EXAMPLE[problem] not in FACTS[name].takes or name == "solution-posterior" or own_grids:
        with pytest.raises(InputError):
            trained()
        return
    found = of.errors(trained().double(), D)["systems"]
    for errors in found.values():
        assert 0 < errors["kernel_error" if problem == "world" else "operator_error_heldout"] < 1e4
