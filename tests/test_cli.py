"""The command line: what a user types, and what comes back."""

import json
import subprocess
import sys
from types import SimpleNamespace

import h5py
import pytest
import torch

from kernelmap.cli import main as cli
from kernelmap.io.models import load_model, shipped_models
from kernelmap.problems.radial import RadialData
from processes import python

SMALL = ["--dx", "0.1", "--d", "20", "--setting", "sine", "--epochs", "2", "--every", "1"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model trained for a moment on a coarse grid."""
    out = tmp_path_factory.mktemp("model")
    done = python("-m", "kernelmap", "train", "radial", "--map", "nao", "--dk", 4, *SMALL, "--out", out)
    assert done.returncode == 0, done.stderr
    return out


def test_help_reads_well(kernelmap):
    code, out, _ = kernelmap("--help")
    assert code == 0
    assert all(command in out for command in cli.COMMANDS)
    for command in cli.COMMANDS:
        code, out, _ = kernelmap(command, "--help")
        assert code == 0
        assert "usage: kernelmap" in out


def test_the_console_script_is_installed():
    listed = subprocess.run([sys.executable, "-m", "kernelmap.cli.main", "models"], capture_output=True, text=True)
    assert listed.returncode == 0
    assert "nao-diverse" in listed.stdout


def test_generate(kernelmap, tmp_path):
    path = tmp_path / "radial.h5"
    code, out, _ = kernelmap("generate", "radial", "--out", path, "--setting", "fewer", "--dx", 0.1, "--noise", 0.01)
    assert code == 0
    assert "21 training systems" in out
    data = RadialData.load(path)
    assert (len(data.train.names), data.draws, data.test.names) == (21, 5, ("id", "ood1", "ood2"))
    assert data.test.about["noise"] == 0.01


def test_train_then_evaluate(kernelmap, trained, tmp_path):
    path = tmp_path / "errors.json"
    code, out, err = kernelmap("evaluate", trained, "radial", "--variant", "released", "--dx", 0.1, "--json", path)
    assert code == 0, err
    result = json.loads(path.read_text())
    assert result["parameters"] == load_model(trained)[0].parameter_count
    assert list(result["systems"]) == ["id", "ood1", "ood2"]
    for errors in result["systems"].values():
        assert list(errors) == [
            "operator_error_context",
            "operator_error_heldout",
            "kernel_error",
            "kernel_error_pooled",
        ]
        assert all(0 < value < 10 for value in errors.values())
    assert "held out" in out


@pytest.mark.parametrize("name", ["discrete-nao", "softmax-nao", "nao-u", "afno", "autoencoder"])
def test_every_map_trains(kernelmap, tmp_path, name):
    code, _, err = kernelmap("train", "radial", "--map", name, *SMALL, "--out", tmp_path / "model")
    assert code == 0, err
    _, about = load_model(tmp_path / "model")
    assert about["map"] == name
    assert about["command"].startswith("kernelmap train radial --map")


def test_a_finished_run_resumes_to_nothing(kernelmap, trained):
    before = (trained / "weights.safetensors").read_bytes()
    code, out, _ = kernelmap("train", "radial", "--map", "nao", "--dk", "4", *SMALL, "--out", trained, "--resume")
    assert code == 0
    assert "2 epochs" in out
    assert (trained / "weights.safetensors").read_bytes() == before


def test_models(kernelmap):
    code, out, _ = kernelmap("models")
    assert code == 0
    assert all(name in out for name in shipped_models())


def test_demo(kernelmap, tmp_path):
    code, out, err = kernelmap("demo", "--out", tmp_path)
    assert code == 0, err
    assert "never measured" in out
    assert "<svg" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "discovery.png").read_bytes().startswith(b"\x89PNG")
    lines = (tmp_path / "kernel.csv").read_text().splitlines()
    assert lines[0] == "r,K,std"
    assert len(lines) == 881


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["evaluate", "nowhere", "radial"], "neither a model directory"),
        (["evaluate", "nao-diverse", "radial", "--d", "50"], "exactly d = 302 pairs, got 50"),
        (["evaluate", "nao-diverse", "radial", "--d", "0"], "exactly d = 302 pairs, got 0"),
        (["generate", "radial", "--out", "x.txt"], "must name an HDF5 file"),
        (["generate", "radial", "--out", "x.h5", "--dx", "0.3"], "dx must divide"),
        (
            ["generate", "radial", "--out", "x.h5", "--dx", "0.1", "--noise", "-1"],
            "level of noise must not be negative",
        ),
        (["import-released", "nowhere.ckpt", "--setting", "sine", "--out", "x"], "but there is nothing"),
        (["train", "radial", "--out", "x", "--epochs", "0"], "at least 1"),
        (["train", "radial", "--out", "x", "--threads", "0"], "at least 1"),
        (["train", "radial", "--out", "x", "--lr", "nan"], "lr positive"),
        (["train", "radial", "--out", "x", "--clip", "-1"], "clip must be positive"),
        (["train", "radial", "--out", "x", "--dx", "0.1", "--d", "20", "--devices", "0"], "at least 1"),
        (
            ["train", "radial", "--out", "x", "--dx", "0.1", "--d", "20", "--device", "abacus"],
            "cannot be used as asked",
        ),
        (["generate", "radial", "--out", "x.h5", "--dx", "0.00001"], "dx must divide"),
        (["bench", "attention", "--repeats", "0"], "at least 1"),
        (["bench", "attention", "--plot", "x.png"], "only `bench discover` draws"),
        (["train", "radial", "--out", "x", "--map", "mine"], "no map named 'mine'; there are"),
        (["train", "waves", "--out", "x"], "no problem named 'waves'; there are"),
        (["train"], "needs a problem; there are darcy, mechanics, own, radial, world"),
        (["train", "mechanics", "--out", "x"], "give --data FILE"),
        (["discover", "nowhere.npz"], "nowhere.npz"),
        (["train", "radial", "--out", "x", "--dx", "0.1", "--d", "9999"], "between 1 and"),
    ],
)
def test_bad_use_ends_with_a_sentence_and_code_2(kernelmap, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    code, _, err = kernelmap(*words)
    assert code == 2
    assert err.startswith("error: ")
    assert sentence in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_unknown_words_end_with_code_2(kernelmap):
    assert kernelmap("evaluate", "nao-diverse", "elastic")[0] == 2
    assert kernelmap("discover-everything")[0] == 2


def test_foreign_files(kernelmap, trained, tmp_path):
    (tmp_path / "config.json").write_text((trained / "config.json").read_text())
    (tmp_path / "weights.safetensors").write_text("these are not weights")
    code, _, err = kernelmap("evaluate", tmp_path, "radial", "--dx", 0.1)
    assert code == 2
    assert "not a readable safetensors file" in err
    (tmp_path / "fake.ckpt").write_text("not a checkpoint")
    code, _, err = kernelmap("import-released", tmp_path / "fake.ckpt", "--setting", "sine", "--out", tmp_path / "x")
    assert code == 2
    assert "can be read safely" in err


def test_generated_files_open_anywhere(kernelmap, tmp_path):
    path = tmp_path / "radial.h5"
    kernelmap("generate", "radial", "--out", path, "--dx", 0.1)
    with h5py.File(path) as file:
        shapes = {name: file[f"test/{name}"].shape for name in ("u", "f", "kernels")}  # pyright: ignore
    assert shapes["u"][1:] == (shapes["f"][1], 110)
    assert shapes["kernels"] == (3, 1, 110)


def test_memory_that_torch_does_not_get_is_said(monkeypatch, capsys):
    """It raises a RuntimeError, as it does for mistakes of ours."""
    monkeypatch.setattr(cli, "module_of", lambda name: SimpleNamespace(run=lambda words: torch.empty(2**55)))
    assert cli.run(["check"]) == 2
    assert "not enough memory" in capsys.readouterr().err
