"""Files of time series: what is read, what is refused, and the way from a file to predictions."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import config

from kernelmap import InputError, discover, read_measurements
from kernelmap.core import Kernel, grids
from kernelmap.core.domain import ContextShape
from kernelmap.io import read_inputs
from kernelmap.maps import MAPS
from measurement_files import FORMATS, assert_same, write


@pytest.fixture(autouse=True)
def as_installed(monkeypatch):
    """Without the type checks of the test run, which would come before the sentences users see."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)


def record(**changes) -> dict:
    """60 samples of a rough input and its causal response to exp(-s/3), memory 12; None leaves an entry out."""
    t = 0.5 * np.arange(120)
    u = np.random.default_rng(0).normal(size=120)
    weights = 0.5 * np.exp(-0.5 * np.arange(25) / 3)
    weights[[0, -1]] /= 2
    f = np.convolve(u, weights)[:120]
    f[::3] = np.nan
    entries = {"operator": "convolution", "t": t, "u": u, "f": f, "radius": 12.0} | changes
    return {name: value for name, value in entries.items() if value is not None}


def changed(name: str, at, value) -> dict:
    values = record()[name].copy()
    values[at] = value
    return record(**{name: values})


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_gives_the_same_pairs(tmp_path, format):
    read = read_measurements(write(tmp_path, format, **record()))
    found, kernel = read.context, np.exp(-read.context.y.points[:, 0].numpy() / 3)
    assert (read.found["layout"], read.found["lags"]) == ("convolution", "25 from 0 to 12")
    assert read.found["dropped"] == "40 where f is NaN; 16 where u is not known over the memory"
    np.testing.assert_allclose((kernel * found.y.weights.numpy()) @ found.U.numpy(), found.F[0].numpy(), rtol=1e-12)
    assert found.operator == "convolution"
    assert found.name(0) == "pair 0 (t = 12.5)"


def test_t_alone_marks_a_convolution(tmp_path):
    assert_same(
        read_measurements(write(tmp_path, "npz", **record(operator=None))).context,
        read_measurements(write(tmp_path, "hdf5", **record())).context,
    )


def test_runs_are_rows_of_all_three(tmp_path):
    one = record()
    both = {name: np.stack([one[name]] * 2) for name in ("t", "u", "f")}
    read = read_measurements(write(tmp_path, "npz", **record(**both)))
    single = read_measurements(write(tmp_path, "hdf5", **one)).context
    assert read.context.d == 2 * single.d
    assert read.context.name(single.d) == f"pair {single.d} (run = 1, t = 12.5)"
    np.testing.assert_array_equal(read.context.U[:, single.d :], single.U)


def test_responses_at_times_of_their_own(tmp_path):
    at = np.array([20.0, 20.25, 70.0, np.nan])
    read = read_measurements(write(tmp_path, "npz", **record(t_f=at, f=np.array([1.0, 2.0, 3.0, np.nan]))))
    u = record()["u"]
    assert read.context.d == 2
    np.testing.assert_allclose(read.context.U[:3, 0], u[[40, 39, 38]])
    np.testing.assert_allclose(read.context.U[:2, 1], (u[[41, 40]] + u[[40, 39]]) / 2)
    assert read.found["dropped"] == "1 where f is NaN; 1 where u is not known over the memory"


@pytest.mark.parametrize("format", ["npz", "hdf5"])
def test_dates_count_in_days(tmp_path, format):
    dates = np.datetime64("2003-01-01") + np.arange(120)
    texts = [str(date) for date in dates]
    read = read_measurements(write(tmp_path, format, **record(t=dates if format == "npz" else texts)))
    assert read.found["lags"] == "13 from 0 to 12"
    assert read.context.name(0) == "pair 0 (2003-01-14)"
    assert read.labels == {"t_unit": "days"}


def test_several_inputs_are_blocks_and_a_model_of_one_kernel_says_so(tmp_path):
    two = np.stack([record()["u"], np.arange(120.0)])
    context = read_measurements(write(tmp_path, "npz", **record(u=two))).context
    assert context.blocks == (25, 25)
    np.testing.assert_array_equal(context.U[25:28, 0], [25, 24, 23])
    with pytest.raises(InputError, match=r"u holds 2 inputs that act together.*nao does not take several yet"):
        discover(MAPS["nao"].build(ContextShape.of(context), MAPS["nao"].Options()), context)


def csv(folder: Path, lines: list[str]) -> Path:
    (folder / "mine.csv").write_text("\n".join(lines), encoding="utf-8")
    return folder / "mine.csv"


def test_a_table_of_dates(tmp_path):
    lines = [
        f"2003-01-{day:02d},{u:.17g},{'' if np.isnan(f) else format(f, '.17g')}"
        for day, u, f in zip(range(1, 32), record()["u"], record()["f"], strict=False)
    ]
    read = read_measurements(
        csv(tmp_path, ["# a comment", "# radius = 6", "# u_unit = mm/day", "day,rain,f", *lines, ""])
    )
    days = np.datetime64("2003-01-01") + np.arange(31)
    same = record(t=days, u=record()["u"][:31], f=record()["f"][:31], radius=6.0)
    assert_same(read.context, read_measurements(write(tmp_path, "npz", **same)).context)
    assert read.found["format"] == "CSV"
    assert read.labels == {"u_name": "rain", "u_unit": "mm/day", "t_unit": "days"}
    named = csv(tmp_path, ["# u_name = rain at the well", "# radius = 6", "day,rain,f", *lines])
    assert read_measurements(named).labels["u_name"] == "rain at the well"
    assert read.context.name(0) == "pair 0 (2003-01-08)"


BAD = {
    "u of another length": (record(u=np.ones(119)), r"u must have shape .* J = 120 times of t, got \(119,\)"),
    "swapped u": (record(u=np.ones((120, 2))), "axes seem swapped: times go last"),
    "NaN in u": (changed("u", 3, np.nan), r"u holds 1 value\(s\) that are NaN"),
    "NaN in t": (changed("t", 3, np.nan), r"t holds 1 value\(s\) that are NaN"),
    "unsorted times": (changed("t", [3, 4], [2.0, 1.5]), "increasing times; sort t, u and f by t"),
    "a time twice": (changed("t", 3, 1.0), "drop times given twice"),
    "unequal steps": (changed("t", 3, 1.7), "equal steps, got steps from 0.3 to 0.7.*t_f"),
    "steps of runs differ": (
        record(t=np.stack([record()["t"], 2 * record()["t"]]), u=np.ones((2, 120)), f=np.ones((2, 120))),
        "all runs must have the same step of time, got from 0.5 to 1",
    ),
    "two times": (record(t=[0, 1], u=[0, 1], f=[0, 1]), "at least 3 increasing times"),
    "f longer than u": (record(f=np.ones(125)), r"f must have the shape of t, \(120,\).*got \(125,\).*longer than u"),
    "f of two runs": (record(f=np.ones((2, 60))[:, :50]), r"f must have the shape of t, \(120,\)"),
    "infinite f": (changed("f", 1, np.inf), "f holds 1 infinite"),
    "memory beyond the record": (record(radius=60.0), "record is 59.5 long, but u must be known over 60.*memory"),
    "two-sided memory": (record(radius=30.0, lags="two-sided"), "must be known over 60 around"),
    "radius below the step": (record(radius=0.1), "radius must be one number above the step 0.5 of the record.*of t"),
    "memory beyond the period": (record(radius=61.0, lags="periodic"), "longer than the period, 60"),
    "another word for lags": (record(lags="acausal"), "lags must be the text 'causal', 'two-sided', 'periodic'"),
    "a number for lags": (record(lags=3), "lags must be the text"),
    "nothing measured": (record(f=np.full(120, np.nan)), r"at least 2 pairs, got 0 \(dropped: 120 where f is NaN"),
    "t_f and f disagree": (record(t_f=np.ones(5)), r"f must have the shape of t_f, \(5,\)"),
    "one t_f": (record(t_f=np.array(7.0)), r"t_f must have shape \(J,\).*got \(\)"),
    "t_f NaN": (record(t_f=np.full(120, np.nan)), "t_f is NaN where f was measured"),
    "dates for t_f alone": (record(t_f=np.array(["2003-01-01"] * 120)), "one of them holds dates"),
    "not a date": (record(t=np.array(["1st May"] * 120)), "dates such as 2003-01-31"),
    "three axes of t": (record(t=np.ones((2, 3, 4))), r"t must have shape \(J,\), or \(S, J\)"),
    "a number for a unit": (record(u_unit=3), "u_unit must be a text"),
    "too much": (record(radius=1e6, outside="zero"), "lags do not fit into memory"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said(tmp_path, case):
    entries, sentence = BAD[case]
    with pytest.raises(InputError, match=rf"mine\.npz: .*{sentence}"):
        read_measurements(write(tmp_path, "npz", **entries))


BAD_TABLES = {
    "empty": (["# radius = 3"], "the table is empty"),
    "semicolons": (["t;u;f", "0;1;2"], "with commas between them, got 't;u;f'"),
    "a column twice": (["t,u,u,f", "0,1,1,2"], "all different"),
    "a short line": (["t,u,f", "0,1,2", "1,2"], "line 2 after the header has 2 fields, the header 3"),
    "a word": (["t,u,f", "0,high,2"], "line 1 after the header has 'high' in the column u; expected a number"),
    "a hole in u": (["t,u,f", "0,1,2", "1,,2", "2,1,2", "3,1,2"], r"u holds 1 value\(s\) that are NaN"),
    "days first": (["t,u,f", "31/01/2003,1,2", "01/02/2003,1,2"], "dates such as 2003-01-31"),
    "no f": (["t,u", "0,1", "1,2"], "expected the entries of one layout .convolution: t, u, f"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_what_is_wrong_with_a_table_is_said(tmp_path, case):
    lines, sentence = BAD_TABLES[case]
    with pytest.raises(InputError, match=rf"mine\.csv: .*{sentence}"):
        read_measurements(csv(tmp_path, lines))


def test_a_time_that_is_none_has_no_response(tmp_path):
    """NaT in t_f, beside dates at which f is predicted."""
    kernel = Kernel(torch.ones(1, 11).double(), grids.from_points(np.arange(11.0)), grids.point())
    t = np.datetime64("2003-01-01") + np.arange(30)
    np.savez(tmp_path / "new.npz", t=t, u=np.ones(30), t_f=np.append(t[20:22], np.datetime64("NaT")))
    read = read_inputs(tmp_path / "new.npz", kernel)
    assert read.at.tolist() == [0, 1]
    assert np.isnat(read.places["t"]).tolist() == [False, False, True]


def test_from_a_file_to_predictions(tmp_path, kernelmap):
    dates = np.datetime64("2003-01-01") + np.arange(120)
    np.savez(tmp_path / "mine.npz", **record(t=dates, f_name="head", f_unit="m", u_unit="mm/day"))
    code, out, err = kernelmap(
        "discover", tmp_path / "mine.npz", "--out", tmp_path / "out", "--json", tmp_path / "found.json"
    )
    assert code == 0, err
    assert "(2003-" in out
    found = json.loads((tmp_path / "found.json").read_text())
    s = np.array(found["y"])[:, 0]
    # One step is half a unit of the record and one day here: K(s) = exp(-s/6) / 2.
    np.testing.assert_allclose(found["kernel"][0], np.exp(-s / 6) / 2, atol=0.05)
    assert "m / (mm/day · days)" in (tmp_path / "out" / "report.html").read_text()
    assert "lag s (days)" in (tmp_path / "out" / "report.html").read_text()
    assert (tmp_path / "out" / "kernel.csv").read_text().startswith("s,K,std\n")
    np.savez(tmp_path / "new.npz", **record(t=dates, f=None))
    for name in ("pred.npz", "pred.csv"):
        words = ("predict", tmp_path / "out" / "discovery.h5", tmp_path / "new.npz", "--out", tmp_path / name)
        assert kernelmap(*words)[0] == 0
    pred = np.load(tmp_path / "pred.npz")
    measured = ~np.isnan(record()["f"]) & (np.arange(120) >= 12)
    assert pred["mean"].shape == (120,)
    assert np.isnan(pred["mean"][:12]).all()
    np.testing.assert_array_equal(pred["t"].astype("datetime64[D]"), dates)
    f = record()["f"][measured]
    assert np.abs(pred["mean"][measured] - f).max() < 0.5 * np.std(f)
    assert (tmp_path / "pred.csv").read_text().splitlines()[0] == "axis0,t,mean,std"
    for changes, sentence in (
        ({"t": record()["t"]}, "lags have steps of 1, t 0.5"),
        ({"lags": "two-sided"}, "run from 0 to 12; say so by the entry lags"),
        ({"u": np.ones((2, 120))}, r"for each of 1 input\(s\), u holds 2"),
        ({"t": dates[:10], "u": np.ones(10)}, "the record is 9 long, but u must be known over 12"),
    ):
        np.savez(tmp_path / "bad.npz", **(record(f=None) | {"t": dates} | changes))  # pyright: ignore
        words = ("predict", tmp_path / "out" / "discovery.h5", tmp_path / "bad.npz", "--out", tmp_path / "p.npz")
        code, _, err = kernelmap(*words)
        assert code == 2
        assert sentence.replace("\\", "") in err


def test_the_page_is_true(tmp_path, kernelmap, monkeypatch):
    """Its examples run, the kernel is found, and predictions are where u is known."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs" / "time-series.md").read_text()
    names: dict = {}
    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(example, names)
    assert kernelmap("check", "level.npz")[0] == 0
    assert kernelmap("discover", "level.npz", "--out", "DIR")[0] == 0
    s, K, std = np.loadtxt("DIR/kernel.csv", delimiter=",", skiprows=1).T
    assert np.sqrt(np.mean((K - np.exp(-s / 5)) ** 2)) < 0.03
    assert np.mean(np.abs(K - np.exp(-s / 5)) < 1.96 * std) > 0.8
    assert kernelmap("predict", "DIR/discovery.h5", "next.npz", "--out", "pred.csv")[0] == 0
    lines = (tmp_path / "pred.csv").read_text().splitlines()
    assert lines[40].endswith("nan,nan")
    assert not lines[41].endswith("nan")
    (table,) = re.findall(r"```text\n(# radius.*?)```", page, re.DOTALL)
    more = "".join(f"2024-01-{day:02d},1.5,2\n" for day in range(4, 32))
    (tmp_path / "table.csv").write_text(table.replace("= 40", "= 5") + more)
    assert read_measurements("table.csv").found["pairs"] == "26"
