"""Files of every operator with something wrong in them: the sentence that helps, and lines that mend what can be."""

import re

import h5py
import numpy as np
import pytest
from jaxtyping import config
from scipy.io import savemat

from kernelmap import InputError, read_measurements

RNG = np.random.default_rng(0)
AXIS, ROWS = np.linspace(0, 3, 31), RNG.normal(size=(6, 31))
PLANE = {"x1": np.linspace(0, 1, 11), "x2": np.linspace(0, 1.2, 13)}
FIELDS = PLANE | {"u": RNG.normal(size=(4, 11, 13)), "f": RNG.normal(size=(4, 11, 13))}
GOOD = {
    "radial": {"operator": "radial", "x": AXIS, "u": ROWS, "f": ROWS, "radius": 0.5},
    "plane": FIELDS | {"operator": "radial", "radius": 0.3},
    "convolution": {"operator": "convolution", "t": AXIS, "u": ROWS[0], "f": ROWS[1], "radius": 0.5},
    "interaction": {"operator": "interaction", "positions": RNG.normal(size=(7, 4, 2)), "t": np.arange(7.0)},
    "integral": {"operator": "integral", "y": AXIS, "x": AXIS[:20], "u": ROWS, "f": ROWS[:, :20]},
    "fields": FIELDS | {"operator": "fields"},
    "tokens": {"operator": "tokens", "r": AXIS[1:], "U": ROWS.T[1:], "F": ROWS[:, 0]},
}


def holed(values: np.ndarray) -> np.ndarray:
    out = values.copy()
    out.flat[3] = np.nan
    return out


def turned(values: np.ndarray) -> np.ndarray:
    """Pairs last in place of first."""
    return np.moveaxis(values, 0, -1)


ROUND = np.r_[5:31, 0:5]
BAD = {
    "radial": {
        "u turned": ({"u": ROWS.T}, r"u must have shape \(J,\) or \(n, J\).* axes seem swapped"),
        "NaN in u": ({"u": holed(ROWS)}, r"u holds 1 value\(s\) that are NaN"),
        "x unsorted": ({"x": AXIS[ROUND], "u": ROWS[:, ROUND], "f": ROWS[:, ROUND]}, "x must hold .* sort x, u and f"),
        "f longer than u": ({"f": np.ones((6, 40))}, r"f must have shape .*31 points of x, got \(6, 40\)"),
        "more f than u": ({"f": np.ones((7, 31))}, "u holds 6 functions but f holds 7"),
    },
    "plane": {
        "u turned": (
            {"u": turned(FIELDS["u"])},
            r"u must have shape \(J1, J2\) or .*11 x 13 points.* axes seem swapped",
        ),
        "NaN in u": ({"u": holed(FIELDS["u"])}, "u holds 1 value"),
        "other steps": ({"x2": np.linspace(0, 1, 13)}, "x1 and x2 must go in the same steps, got 0.1 and 0.0833"),
        "x1 unsorted": ({"x1": PLANE["x1"][::-1]}, "x1 must hold at least 3 increasing"),
        "f longer than u": ({"f": np.ones((4, 12, 13))}, r"f must have shape .*got \(4, 12, 13\)"),
        "a trend": ({"unknown": "trend"}, "a trend is one along a line or in time"),
        "too short": ({"radius": 0.6}, "mesh is 1 long, but u must be known within the radius 0.7 "),
        "more than a period": ({"outside": "periodic", "radius": 0.8}, "more than half the period 1.1"),
    },
    "convolution": {
        "NaN in u": ({"u": holed(ROWS[0])}, "u holds 1 value"),
        "u turned": ({"u": ROWS.T}, r"u must have shape .*Its axes seem swapped: times go last"),
        "t unsorted": ({"t": AXIS[ROUND], "u": ROWS[0, ROUND], "f": ROWS[1, ROUND]}, "t must hold .*sort t, u and f"),
        "f longer than u": ({"f": np.ones(40)}, "f must have the shape of t.* It is longer than u"),
        "periodic outside": ({"outside": "periodic"}, 'outside must be the text "zero" or be left out'),
    },
    "interaction": {
        "neither velocities nor times": ({"t": None}, "without velocities and without times"),
        "NaN in positions": ({"positions": np.full((7, 4, 2), np.nan)}, "where a particle is must be known"),
        "t unsorted": ({"t": np.array([1.0, 0, 2, 3, 4, 5, 6])}, "t must increase"),
        "other velocities": ({"velocities": np.ones((7, 5, 2))}, r"shape of positions, \(7, 4, 2\).*got \(7, 5, 2\)"),
        "more times": ({"t": np.arange(9.0)}, r"t must have shape \(7,\).*got \(9,\)"),
    },
    "integral": {
        "u turned": ({"u": ROWS.T}, "u must have shape .*rows are pairs here"),
        "f turned": ({"f": ROWS[:, :20].T}, "f must have shape .*rows are pairs here"),
        "NaN in f": ({"f": holed(ROWS[:, :20])}, "f holds 1 value.* the model integral takes no missing values"),
        "NaN in u": ({"u": holed(ROWS)}, "u holds 1 value"),
        "y unsorted": ({"y": AXIS[ROUND], "u": ROWS[:, ROUND]}, "neither increasing on a line nor a uniform mesh"),
        "f longer than u": ({"f": np.ones((9, 20))}, "u holds 6 pairs: every u needs its f"),
        "symmetric": ({"symmetric": 1}, "symmetry of K, or a kink on its diagonal, cannot be told"),
        "a kink": ({"kink": "diagonal"}, "symmetry of K, or a kink on its diagonal, cannot be told"),
    },
    "fields": {
        "u turned": ({"u": turned(FIELDS["u"])}, "u must have shape .*axes seem swapped: pairs go first"),
        "NaN in f": ({"f": holed(FIELDS["f"])}, "f holds 1 value"),
        "x2 unsorted": ({"x2": PLANE["x2"][::-1]}, "x2 must hold at least 3 mesh points, increasing"),
        "more f than u": ({"f": np.ones((5, 11, 13))}, "u holds 4 fields but f holds 5"),
    },
    "tokens": {
        "U turned": ({"U": ROWS[:, 1:]}, "Its axes seem swapped: pairs go last|U has 6 rows"),
        "NaN in U": ({"U": holed(ROWS.T[1:])}, "U holds 1 value"),
        "r unsorted": ({"r": AXIS[:0:-1]}, "r must begin above 0 and increase"),
        "F longer than U": ({"F": np.ones(9)}, "U holds 6 pairs but F holds 9"),
    },
}
CASES = [(operator, case) for operator, cases in BAD.items() for case in cases]


@pytest.fixture(autouse=True)
def as_installed(monkeypatch):
    """Without the type checks of the test run, which would come before the sentences users see."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)


@pytest.mark.parametrize("operator", GOOD)
def test_what_is_right_is_read(tmp_path, operator):
    np.savez(tmp_path / "mine.npz", **GOOD[operator])
    assert read_measurements(tmp_path / "mine.npz").context.d > 1


@pytest.mark.parametrize(("operator", "case"), CASES)
def test_what_is_wrong_is_said(tmp_path, operator, case):
    changes, sentence = BAD[operator][case]
    entries = {name: values for name, values in (GOOD[operator] | changes).items() if values is not None}
    np.savez(tmp_path / "mine.npz", **entries)
    with pytest.raises(InputError, match=rf"mine\.npz: .*({sentence})"):
        read_measurements(tmp_path / "mine.npz")


MENDED = {
    ("radial", "u turned"),
    ("radial", "x unsorted"),
    ("plane", "u turned"),
    ("convolution", "u turned"),
    ("convolution", "t unsorted"),
    ("interaction", "t unsorted"),
    ("integral", "u turned"),
    ("integral", "f turned"),
    ("integral", "y unsorted"),
    ("fields", "u turned"),
}


@pytest.mark.parametrize("kind", ["npz", "h5", "mat"])
@pytest.mark.parametrize(("operator", "case"), sorted(MENDED))
def test_the_lines_of_check_mend_it(tmp_path, kernelmap, operator, case, kind):
    """They are run as they are printed, and the file they write has the pairs of the one that was right."""
    path = write(tmp_path / f"mine.{kind}", GOOD[operator] | BAD[operator][case][0])
    code, _, err = kernelmap("check", path)
    assert code == 2
    *_, head, imports, reading, writing = err.splitlines()
    assert head == "These lines write a file that is right:"
    exec("\n".join(line.strip() for line in (imports, reading, writing)), {})
    right = read_measurements(write(tmp_path / "right.npz", GOOD[operator])).context
    mended = read_measurements(tmp_path / "mine-mended.npz").context
    assert mended.d == right.d
    if operator != "interaction" and case != "u turned":
        assert abs(float((mended.U - right.U).norm())) < 1e-9


def write(path, entries):
    if path.suffix == ".npz":
        np.savez(path, **entries)
    elif path.suffix == ".mat":
        savemat(path, entries)
    else:
        with h5py.File(path, "w") as file:
            file.update(entries)
    return path


def test_entries_with_other_capitals_are_mended(tmp_path, kernelmap):
    np.savez(tmp_path / "mine.npz", X=AXIS, u=ROWS, f=ROWS, radius=0.5)
    code, _, err = kernelmap("check", tmp_path / "mine.npz")
    assert code == 2
    exec("\n".join(line.strip() for line in err.splitlines()[-3:]), {})
    assert read_measurements(tmp_path / "mine-mended.npz").found["layout"] == "mesh"


def test_what_else_a_file_could_be_is_three_lines_away(tmp_path, kernelmap):
    np.savez(tmp_path / "mine.npz", **(FIELDS | {"radius": np.asarray(0.3)}))  # pyright: ignore
    code, out, _ = kernelmap("check", tmp_path / "mine.npz")
    assert code == 0
    assert re.search(r"operator\s+│ fields", out)
    assert re.search(r"model\s+│ darcy", out)
    exec("\n".join(line.strip() for line in out.splitlines()[-3:]), {})
    found = read_measurements(tmp_path / "mine-mended.npz").found
    assert (found["layout"], found["operator"][:9]) == ("mesh of a plane", "radial in")
