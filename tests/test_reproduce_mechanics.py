"""Table 4, its floor and its figure; `evaluate` on freshly solved specimens. All on few pixels and loads."""

import json

import numpy as np
import pytest
import torch

from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.io.models import load_model, save_model
from kernelmap.maps import NoOptions
from kernelmap.paper.figures import mechanics as mechanics_figure
from kernelmap.paper.linear_floor import linear_floor, linearised
from kernelmap.paper.tables import mechanics as mechanics_table
from kernelmap.paper.tables.mechanics import TABLE4
from kernelmap.paper.tables.text import cells
from kernelmap.posterior.elastic.map import MaterialPosteriorMap
from kernelmap.problems.mechanics import Plan, bitmaps, generate, mechanics
from kernelmap.problems.mechanics import problem as mechanics_problem
from kernelmap.problems.mechanics.errors import errors_on_mechanics, solved, specimens_of

PIXELS = 5
IMAGES = np.random.default_rng(0).integers(0, 256, (12, PIXELS, PIXELS), dtype=np.uint8)


def small(count: int = 2):
    return bitmaps(IMAGES[:count])


@pytest.fixture(scope="module")
def systems():
    return solved(small(), loads=20, elements="q2-5")


@pytest.fixture
def few(monkeypatch):
    """Specimens of few pixels wherever test specimens are asked for."""

    def tiny(specimens, loads=8):
        return solved(specimens, min(loads, 8), elements="q1-5")

    for module in (mechanics_problem, mechanics_figure, mechanics_table):
        if hasattr(module, "specimens_of"):
            monkeypatch.setattr(module, "specimens_of", lambda split, count=2: small(count))
    monkeypatch.setattr(mechanics_problem, "solved", tiny)
    monkeypatch.setattr(mechanics_figure, "solved", tiny)
    monkeypatch.setattr(mechanics_figure, "PAIRS", 8)


def test_the_table_has_the_papers_rows_ours_and_the_floor():
    rows = TABLE4.rows
    assert len(rows) == 26
    assert sum(row.printed is not None for row in rows.values()) == 12
    spectral = rows["nao-40-40-id-spectral"]
    assert (spectral.options.start, spectral.recipe.validation_systems, spectral.recipe.points) == ("inverse", 9, None)
    nao = rows["nao-100-100-ood"]
    assert nao.printed is not None
    assert nao.printed.operator == (5.58,)
    assert (nao.options.normaliser, nao.options.per_component, nao.recipe.points) == ("functions", True, 26)
    assert rows["discrete-40-40-id"].options.normaliser == "array"
    assert cells(TABLE4, {})[0][1][1][:4] == ["NAO, ID", "- (142534)", "-", "6.57"]


def test_fresh_specimens_are_those_of_the_data_set(tmp_path, systems):
    generate(Plan(bitmaps(IMAGES), loads=20, elements="q2-5"), tmp_path / "set.h5", jobs=1)
    data = mechanics(tmp_path / "set.h5", "id")
    test, heldout = systems
    assert data.test.names[0] == test.names[1]
    for mine, theirs in ((test, data.test), (heldout, data.heldout)):
        np.testing.assert_allclose(mine.f[1].float().numpy(), theirs.f[0].numpy(), rtol=1e-6)
        np.testing.assert_allclose(mine.u.float().numpy(), theirs.u.numpy(), rtol=1e-5, atol=1e-6)


def test_errors_of_the_posterior(systems):
    test, heldout = systems
    shape = ContextShape.of(test.batch(torch.arange(2)[None], torch.tensor([0])))
    found = errors_on_mechanics(MaterialPosteriorMap(shape, NoOptions()), test, heldout, 20)
    mean = found["systems"]["test"]
    assert set(found["specimens"]) == set(test.names)
    # 5 x 5 cells hardly resolve these loads.
    assert 0.05 < mean["operator_error_context"] < 0.25
    assert 0.05 < mean["operator_error_heldout"] < 0.25


def test_the_floor_lies_below_the_linearisation():
    found = linear_floor(IMAGES[0], 600, 100, "q1-5")
    assert found["floor"] < 1.02 * found["at_rest"]
    assert found["floor"] < found["least_squares"]


def test_linearised_is_the_limit_of_small_loads():
    from kernelmap.problems.mechanics import ForceField, respond

    coefficients = ForceField(amplitude=1e-5).draw(2, 0)
    u, converged = respond(IMAGES[0], "q2-5", coefficients)
    assert converged.all()
    np.testing.assert_allclose(linearised(IMAGES[0], coefficients, "q2-5"), u, atol=1e-4 * np.abs(u).max())


def test_evaluate_mechanics(kernelmap, few, tmp_path, systems):
    shape = ContextShape.of(systems[0].batch(torch.arange(4)[None], torch.tensor([0])))
    save_model(tmp_path / "model", MaterialPosteriorMap(shape, NoOptions()), {})
    path = tmp_path / "errors.json"
    command = (
        "evaluate",
        tmp_path / "model",
        "mechanics",
        "--split",
        "ood",
        "--d",
        4,
        "--specimens",
        1,
        "--json",
        path,
    )
    code, out, err = kernelmap(*command)
    assert code == 0, err
    assert "held out" in out
    written = json.loads(path.read_text())
    assert written["data"]["split"] == "ood"
    assert 0 < written["systems"]["test"]["operator_error_heldout"] < 1
    assert kernelmap("evaluate", tmp_path / "model", "mechanics", "--task", "g-to-p")[0] == 2


def test_specimens_of_a_split():
    assert specimens_of("ood", 2).names == ("digit-9-00", "digit-9-01")
    assert len(specimens_of("id", None)) == 50
    with pytest.raises(InputError, match="1 to 50"):
        specimens_of("id", 51)


def test_the_table_says_what_is_missing(kernelmap, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELMAP_CACHE", str(tmp_path))
    code, _, err = kernelmap("reproduce", "table4", "--rows", "nao-40-40-id", "--out", tmp_path / "out")
    assert code == 2
    assert "kernelmap generate mechanics --out" in err


def test_train_mechanics(kernelmap, tmp_path):
    generate(Plan(bitmaps(IMAGES), loads=12, elements="q1-5"), tmp_path / "set.h5", jobs=1)
    options = "--map nao --d 4 --dk 3 --per-component --normaliser functions --points 9 --epochs 2 --every 1 --batch 4"
    code, _, err = kernelmap(
        *("train", "mechanics", "--data", tmp_path / "set.h5", "--out", tmp_path / "model", *options.split())
    )
    assert code == 0, err
    model, about = load_model(tmp_path / "model")
    assert (model.shape.N, about["split"], about["recipe"]["points"]) == (72, "id", 9)
    code, _, err = kernelmap("train", "mechanics", "--data", tmp_path / "none.h5", "--out", tmp_path / "other")
    assert code == 2
    assert "none.h5" in err


def test_figure(few, tmp_path):
    pytest.importorskip("matplotlib")
    assert mechanics_figure.figure_stiffness(tmp_path).stat().st_size > 10_000


@pytest.mark.parametrize(
    ("model", "sentence"), [("radial", "finds kernels of one coordinate"), ("darcy", "fields of one component")]
)
def test_a_model_of_another_problem_is_refused(kernelmap, few, model, sentence):
    code, _, err = kernelmap("evaluate", model, "mechanics", "--specimens", 1, "--d", 4)
    assert code == 2
    assert sentence in err
