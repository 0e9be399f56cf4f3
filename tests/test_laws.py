"""Laws: the truth is named with its parameters, none where there is none, whatever the units."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from kernelmap import InputError, discover, load_model
from kernelmap.core import Context, Grid, grids
from kernelmap.discovery.laws.families import FAMILIES, GAMMA, SINGLE
from kernelmap.discovery.laws.fit import fit
from kernelmap.discovery.laws.pairs import Pairs, interpolation
from kernelmap.operators import Convolution
from kernelmap.report import render

OPERATOR = Convolution(0.1, 80)


def causal(shape, noise: float = 0.01, pairs: int = 80) -> Context:
    """A rough input in time, and its response to a kernel on the grid."""
    rng = np.random.default_rng(3)
    t = 0.1 * np.arange(400)
    size, k, phase = rng.uniform(0.3, 5, (3, 20))
    u = (size @ np.sin(k[:, None] * t + phase[:, None]))[None]
    points = rng.choice(np.arange(80, 400), pairs, replace=False)
    U = OPERATOR.tokens_at(u, np.zeros(pairs, dtype=int), points).T.contiguous()
    f = ((shape(OPERATOR.grid.points[:, 0]) * OPERATOR.grid.weights) @ U)[None]
    f = f + noise * f.std() * torch.from_numpy(rng.normal(size=pairs))
    return Context(U, f, OPERATOR.grid, grids.point(), operator="convolution")


@pytest.fixture(scope="module")
def found():
    """With 3 t exp(-t/1.2) / 1.44, a Gamma law of gain 3."""
    return discover(load_model("kernel1d")[0], causal(lambda t: 3 * t * torch.exp(-t / 1.2) / 1.44))


@pytest.fixture(scope="module")
def form(found):
    return found.closed_form()


def test_the_law_is_named_with_its_parameters(form):
    law = form.best
    assert law is not None
    assert law.family == "Gamma"
    for name, truth in (("k", 2.0), ("L", 1.2), ("A", 3.0)):
        value, error = law.parameters[name]
        assert abs(value - truth) < 3 * error
        assert error < 0.1 * truth
    assert law.noise == pytest.approx(0.01, rel=0.3)
    t = OPERATOR.grid.points[:, 0]
    assert (law.values - 3 * t * torch.exp(-t / 1.2) / 1.44).abs().max() < 0.03


def test_json_and_report_have_it_when_it_was_asked_for(found, form):
    assert "law" not in found.to_json()
    told = replace(found, law=form)
    law = json.loads(json.dumps(told.to_json()))["law"]
    assert law["fits"]
    assert law["laws"][0]["family"] == "Gamma"
    assert law["laws"][0]["parameters"]["k"].keys() == {"value", "error"}
    page = render(told)
    assert "The law" in page
    assert "Gamma, " in page
    assert "The law" not in render(found)


def test_none_fits_a_kernel_of_no_law():
    found = discover(load_model("kernel1d")[0], causal(lambda t: torch.sin(t**2) * torch.exp(-t / 3)))
    form = found.closed_form()
    assert form.best is None
    assert not form.to_json()["fits"]
    assert "none fits" in render(replace(found, law=form))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_family_finds_its_own_parameters(family):
    """From exact responses of a law in the middle of its ranges; in units of the user's."""
    theta = np.array([math.sqrt(p.low * p.high) * (1 + i) for i, p in enumerate(family.parameters)])
    rng = np.random.default_rng(1)
    grid = grids.radii(0.01, 100)
    t, weights = interpolation(grid.points[:, 0].numpy())
    U = (grid.points[:, 0].numpy()[:, None] ** 2) * rng.normal(size=(100, 60))
    amplitudes = np.array([1.0, 0.8])[: len(family.amplitudes)]
    f = amplitudes @ family.shapes(t, 0.01 / 4, theta) @ weights.T @ U
    pairs = Pairs.of(Context(torch.from_numpy(U), torch.from_numpy(f)[None], grid, grids.point()))
    found = fit(family, pairs)
    assert found is not None
    pairs_of = (amplitudes, theta), (found.amplitudes * pairs.kernel, found.theta)
    # As the tokens see them, which go with t².
    truth, law = (t**2 * (a @ family.shapes(t, 0.01 / 4, p)) for a, p in pairs_of)
    np.testing.assert_allclose(law, truth, atol=0.01 * np.abs(truth).max())
    if len(family.terms) == 1:
        np.testing.assert_allclose(found.theta, theta, rtol=0.02)


def test_units_are_the_users():
    """Lengths in another unit: parameters have it, powers of it and all."""
    context = causal(lambda t: t * torch.exp(-t))
    y = Grid(1000 * context.y.points, 1000 * context.y.weights)
    one, other = (fit(GAMMA, Pairs.of(c)) for c in (context, replace(context, y=y, F=1000 * context.F)))
    assert one is not None
    assert other is not None
    np.testing.assert_allclose(other.theta, one.theta, rtol=1e-4)
    assert other.log_evidence == pytest.approx(one.log_evidence, abs=1e-3)


def test_repeats_count_as_often_as_they_were_measured():
    """Twice the same pairs, without noise between them: the same law, of smaller error."""
    context = causal(lambda t: torch.exp(-t))
    twice = Context(torch.cat([context.U] * 2, 1), torch.cat([context.F] * 2, 1), context.y, context.x)
    assert Pairs.of(twice).count == context.d
    np.testing.assert_allclose(np.sort(Pairs.of(twice).f), math.sqrt(2) * np.sort(Pairs.of(context).f))


def test_the_page_is_true(tmp_path, monkeypatch, capsys):
    """Its examples run and find what they were made with."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs" / "after-discovery.md").read_text()
    names: dict = {}
    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(example, names)
    best = names["form"].best
    assert best.family == "exponential"
    assert abs(best.parameters["L"].value - 0.8) < 3 * best.parameters["L"].error
    assert "x = " in capsys.readouterr().out
    listed = re.findall(r"^\| ([\w, /]+) \| (.*) \|$", page, re.MULTILINE)
    formulas = " ".join(formula for _, formula in listed)
    assert [family.formula for family in SINGLE if family.formula not in formulas] == []


def test_laws_are_for_one_coordinate(found):
    with pytest.raises(InputError, match="laws are named for a kernel of one coordinate"):
        replace(
            found,
            context=replace(
                found.context, y=found.context.y.with_components(1), x=grids.radii(1, 2), F=found.context.F.repeat(2, 1)
            ),
        ).closed_form()
