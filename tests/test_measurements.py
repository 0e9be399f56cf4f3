"""Measurements as they are: offset, trend, several inputs."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from kernel1d_systems import SMALL, model, waves
from kernelmap.core import Context, grids
from kernelmap.core.errors import InputError
from kernelmap.core.places import Places
from kernelmap.discovery import discover
from kernelmap.io import load_discovery, read_measurements
from kernelmap.posterior import Kernel1dPosterior
from measured_series import context_of, error, kernel, posterior, series
from processes import python

# Offset and trend


def test_an_offset_is_found_and_does_not_touch_the_kernel(tmp_path):
    entries = series(noise=0.01)
    clean = posterior(context_of(entries | {"unknown": "none"}, tmp_path))
    offset = 3 * entries["f"].std()
    shifted = entries | {"f": entries["f"] + offset}
    found = posterior(context_of(shifted, tmp_path))
    value, std = found.nuisance["offset"]
    assert abs(value - offset) < 3 * std
    assert std < 0.1 * offset
    assert error(found, kernel(0)) < 1.3 * error(clean, kernel(0)) + 0.01
    assert error(posterior(context_of(shifted | {"unknown": "none"}, tmp_path)), kernel(0)) > 0.2
    assert float(found.relative_residual) == pytest.approx(float(clean.relative_residual), rel=0.3)


def test_a_trend_goes_on_in_predictions(tmp_path, kernelmap):
    entries = series(noise=0.01)
    slope = 0.05 * entries["f"].std()
    rising = entries | {"f": entries["f"] + slope * entries["t"], "unknown": "offset, trend"}
    rising["f"][150:] = np.nan
    found = discover(model(), context_of(rising, tmp_path))
    value, std = found.posterior.nuisance["trend"]
    assert abs(value - slope) < 3 * std
    found.save(tmp_path / "discovery.h5")
    code, _, err = kernelmap("predict", tmp_path / "discovery.h5", tmp_path / "series.npz", "--out", tmp_path / "p.npz")
    assert code == 0, err
    predicted = np.load(tmp_path / "p.npz")
    truth = entries["f"] + slope * entries["t"]
    assert np.abs((predicted["mean"] - truth) / predicted["std"])[160:].mean() < 2
    with pytest.raises(InputError, match="trend needs the times"):
        found.predict(found.context.U)


def test_an_offset_by_request_on_radii():
    """Without time there is none unless it is asked for, and then repeated inputs are no error."""
    context, truth = waves(60, noise=0.01)
    shifted = Context(context.U, context.F + 1.0, context.y, context.x)
    assert posterior(shifted).nuisance == {}
    asked = Context(context.U, context.F + 1.0, context.y, context.x, unknown=("offset",))
    found = posterior(asked)
    value, std = found.nuisance["offset"]
    assert abs(value - 1) < 3 * std
    assert error(found, truth.numpy()) < 0.3 * error(posterior(shifted), truth.numpy())


def test_what_is_unknown_is_checked(tmp_path):
    with pytest.raises(InputError, match="unknown must be the text"):
        context_of(series() | {"unknown": "drift"}, tmp_path)
    context, _ = waves(20)
    with pytest.raises(InputError, match="needs the places"):
        Context(context.U, context.F, context.y, context.x, unknown=("trend",))
    with pytest.raises(InputError, match="besides the kernel"):
        Context(context.U, context.F, context.y, context.x, unknown=("drift",))
    places = Places(torch.arange(20.0)[:, None].double(), ("x",))
    kept = Context(context.U, context.F, context.y, context.x, places, unknown=("offset", "trend"))
    kept.save(tmp_path / "context.h5")
    assert read_measurements(tmp_path / "context.h5").context.unknown == ("offset", "trend")


# Several inputs


def test_two_inputs_have_kernels_of_their_own(tmp_path):
    context = context_of(series(inputs=2), tmp_path)
    assert context.blocks == (31, 31)
    found = discover(model(), context)
    truth = np.concatenate([kernel(0), kernel(1)])
    for i, K in enumerate(found.kernel.values[0].numpy().reshape(2, -1)):
        assert np.linalg.norm(K - kernel(i)) < 0.1 * np.linalg.norm(kernel(i))
    inside = np.abs(found.kernel.values[0].numpy() - truth) <= 1.96 * found.std[0].numpy()
    assert inside.mean() > 0.85
    assert found.check is not None
    assert found.check.error < 0.08
    assert not [d for d in found.diagnostics if "go together" in d.seen]
    found.save(tmp_path / "discovery.h5")
    mean, std = load_discovery(tmp_path / "discovery.h5").predict(context.U)
    torch.testing.assert_close(mean, found.predict(context.U).mean)
    torch.testing.assert_close(std, found.predict(context.U).std)
    assert isinstance(found.posterior, Kernel1dPosterior)
    assert found.posterior.sample(3, torch.Generator().manual_seed(0)).shape == (3, 1, 62)


def test_proportional_inputs_are_named(tmp_path):
    entries = series(inputs=2)
    entries["u"][1] = -2 * entries["u"][0]
    found = discover(model(), context_of(entries, tmp_path))
    assert any("inputs 1 and 2 go together" in d.seen for d in found.diagnostics)


def test_inputs_that_are_zero_or_no_more_than_the_offset(tmp_path):
    """A zero has a kernel that nothing is known of; a constant is not told from the offset."""
    entries = series(120, inputs=2)
    entries["u"][1] = 0
    found = posterior(context_of(entries, tmp_path))
    assert error(found, np.concatenate([kernel(0), 0 * kernel(1)])) < 0.6
    assert float(found.variance_reduction[0, 31:].max()) < 0.1
    entries["u"][1] = 7
    with pytest.raises(InputError, match="input 2 varies no more than the offset"):
        posterior(context_of(entries, tmp_path))


def test_several_inputs_by_the_command(tmp_path, kernelmap, small_model):
    entries = series(120, inputs=2)
    np.savez(tmp_path / "two.npz", **entries, u_name="rain, heat", u_unit="mm, W", f_unit="m", t_unit="days")
    words = ["--model", small_model, "--out", tmp_path, "--json", tmp_path / "two.json"]
    code, out, err = kernelmap("discover", tmp_path / "two.npz", *words)
    assert code == 0, err
    assert "offset of f" in out
    assert (tmp_path / "kernel.csv").read_text().startswith("s,K1,std1,K2,std2\n")
    page = (tmp_path / "report.html").read_text()
    assert "K(s) of heat (m / (W · days))" in page
    assert "Offset of f" in page
    found = json.loads((tmp_path / "two.json").read_text())
    assert set(found["nuisance"]["offset"]) == {"value", "std"}
    assert found["error_time"] >= 0


def test_a_radius_is_selected_for_all_inputs_alike():
    from kernelmap.discovery.radius import cut

    y = grids.from_points(torch.arange(5.0)).with_components(2)
    context = Context(
        torch.arange(20.0).reshape(10, 2).double(), torch.ones(1, 2).double(), y, grids.point(), blocks=(5, 5)
    )
    part = cut(context, 2.0)
    assert part.blocks == (3, 3)
    assert part.U[:, 0].tolist() == [0, 2, 4, 10, 12, 14]


def test_the_small_prior_has_survivors():
    """The tests above are of a map that chooses among components."""
    assert len(SMALL.spectra) * len(SMALL.rates) > SMALL.survivors[-1]


def test_the_example_of_the_docs_runs(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "measurements.md").read_text()
    examples = "".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    run = python("-c", examples, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "'offset': (" in run.stdout
    assert "{70: " in run.stdout
    assert 0 < float(run.stdout.splitlines()[-1]) < 1
