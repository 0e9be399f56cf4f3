"""`kernelmap calibrate`, from the command line."""

import json

import pytest


def test_figures_of_a_model(tmp_path, kernelmap):
    words = ("--systems", 2, "--d", 20, "--from-prior", "--json", tmp_path / "found.json", "--plot", tmp_path / "a.png")
    code, out, err = kernelmap("calibrate", "kernel1d", *words)
    assert code == 0, err
    assert "2 systems of its prior" in " ".join(out.split())
    found = json.loads((tmp_path / "found.json").read_text())
    assert set(found["coverage"]) == {"0.5", "0.8", "0.95"}
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["kernel1d", "--systems", 0], "--systems must be at least 1"),
        (["kernel1d", "--d", 0], "--d must be at least 2 pairs, got 0"),
        (["kernel1d", "--d", -5], "--d must be at least 2 pairs, got -5"),
        (["kernel1d", "--noise", -1], "--noise must be a number from 0 on"),
        (["kernel1d", "--noise", "nan"], "--noise must be a number from 0 on"),
        (["kernel1d", "--plot", "a.nope"], "its name must end in .png"),
        (["darcy"], "not a model of kernels of one coordinate"),
    ],
)
def test_what_is_refused(kernelmap, words, sentence):
    code, _, err = kernelmap("calibrate", *words)
    assert code == 2
    assert sentence in " ".join(err.split())
