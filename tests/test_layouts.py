"""Which layout a file has, what is said of one that could be two things, and what is wrong with rows of an integral."""

import numpy as np
import pytest
from jaxtyping import config

from kernelmap import InputError, read_measurements

X = np.linspace(-3, 3, 61)
ROWS = np.random.default_rng(0).normal(size=(8, 61))
MESH = {"x": X, "u": ROWS, "f": ROWS, "radius": 2.0}
FIELDS = {"x1": np.arange(3.0), "x2": np.arange(4.0), "u": np.ones((5, 3, 4)), "f": np.ones((5, 3, 4))}
TOKENS = {"U": ROWS.T, "F": ROWS.T[0], "r": np.arange(1, 62)}
INTEGRAL = {"y": X, "u": ROWS, "f": ROWS[:, 0]}


@pytest.fixture(autouse=True)
def as_installed(monkeypatch):
    """Without the type checks of the test run, which would come before the sentences users see."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)


@pytest.fixture
def read(tmp_path):
    def write_and_read(**entries):
        np.savez(tmp_path / "mine.npz", **entries)
        return read_measurements(tmp_path / "mine.npz")

    return write_and_read


@pytest.mark.parametrize(
    ("entries", "layout"),
    [
        (MESH, "mesh"),
        (FIELDS, "fields"),
        (TOKENS, "tokens on radii"),
        (INTEGRAL, "integral"),
        (INTEGRAL | {"x": X, "f": ROWS}, "integral"),
        (INTEGRAL | {"x": X, "f": ROWS, "operator": "integral"}, "integral"),
        (MESH | {"y": X, "operator": "radial"}, "mesh"),
        (TOKENS | MESH | {"operator": "tokens", "x": None}, "tokens on radii"),
        (TOKENS | INTEGRAL | {"operator": "integral"}, "integral"),
    ],
)
def test_names_and_the_operator_decide(read, entries, layout):
    kept = {name: values for name, values in entries.items() if values is not None}
    assert read(**kept).found["layout"] == layout


def test_what_else_it_could_be_is_said(read, kernelmap, tmp_path):
    found = read(**MESH, y=X).found
    assert found["layout"] == "integral"
    assert found["could also be"].startswith("mesh, f(x) = ∫ K(r)")
    assert "operator = 'radial'" in found["could also be"]
    assert "could also be" in kernelmap("check", tmp_path / "mine.npz")[1]
    assert "could also be" not in read(**MESH, y=X, operator="integral").found
    assert "could also be" not in read(**MESH).found


BAD = {
    "two layouts": (
        MESH | TOKENS,
        r"two things \(mesh: f\(x\) = .*; or tokens on radii: .*'radial' or 'tokens'",
    ),
    "fields and rows": (FIELDS | {"y": X}, "could be two things.*fields u and f on the plane.*'fields' or 'integral'"),
    "another operator": (MESH | {"operator": "wave"}, "operator must be the text 'radial', .*'fields', .* got wave"),
    "a number for operator": (MESH | {"operator": 3}, "operator must be the text"),
    "an operator without its entries": (
        MESH | {"operator": "fields"},
        r"one layout \(fields: x1, u, f\), got f",
    ),
    "columns for u": (INTEGRAL | {"u": ROWS.T}, r"u must have shape \(P, 61\).*got \(61, 8\).*rows are pairs here"),
    "columns for f": (INTEGRAL | {"x": X, "f": ROWS.T}, r"f must have shape .*got \(61, 8\).*rows are pairs here"),
    "no x": (INTEGRAL | {"f": ROWS}, "For several output points give x"),
    "one pair": ({"y": X, "u": ROWS[:1], "f": np.ones(1)}, "at least 2 pairs, got 1"),
    "NaN in f": (INTEGRAL | {"f": np.full(8, np.nan)}, r"f holds 8 value\(s\) that are NaN"),
    "u and f disagree": (INTEGRAL | {"f": np.ones(7)}, "u holds 8 pairs: every u needs its f"),
    "many systems": (INTEGRAL | {"u": ROWS[None], "f": np.ones((3, 8))}, "which is 3 systems; here one is expected"),
    "weights of y": (INTEGRAL | {"weights": np.zeros(61)}, "weights must be positive"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said(read, kernelmap, tmp_path, case):
    entries, sentence = BAD[case]
    with pytest.raises(InputError, match=rf"mine\.npz: .*{sentence}"):
        read(**entries)
    code, _, err = kernelmap("check", tmp_path / "mine.npz")
    assert (code, err.startswith("error: ")) == (2, True)
