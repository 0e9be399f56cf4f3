"""Files that released versions wrote are still read, and say what they said then."""

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from kernelmap import Context, InputError, Recipe, SystemSet, load_discovery, load_model, train
from kernelmap.core.files import read_json
from kernelmap.maps import NAOOptions

DATA = Path(__file__).parent / "data"
VERSIONS = sorted(path.parent.name for path in DATA.glob("*/expected.json"))


@pytest.fixture(params=VERSIONS)
def sample(request) -> Path:
    return DATA / request.param


def same(values: torch.Tensor, expected: list[float], scale: list[float] | None = None) -> None:
    """To 1e-6, and to 1e-9 of the largest value, or of the values of which these are the errors."""
    atol = 1e-9 * np.abs(scale or expected).max()
    np.testing.assert_allclose(values.flatten().numpy(), expected, rtol=1e-6, atol=atol)


def test_there_are_some():
    assert "0.1.0" in VERSIONS


def test_a_discovery_predicts_as_it_did(sample):
    found, expected = load_discovery(sample / "discovery.h5"), read_json(sample / "expected.json")
    mean, std = found.predict(Context.load(sample / "context.h5").U[:, :3])
    same(found.kernel.values, expected["kernel"])
    same(found.std, expected["std"])
    same(mean, expected["mean"])
    # 6e-7 of f: a variance that machines round differently.
    same(std, expected["std_of_f"], scale=expected["mean"])


def test_a_later_format_is_refused(sample, tmp_path):
    shutil.copy(sample / "discovery.h5", tmp_path)
    with h5py.File(tmp_path / "discovery.h5", "a") as file:
        file.attrs["format"] = 2
    with pytest.raises(InputError, match="is of format 2, this version reads format 1"):
        load_discovery(tmp_path / "discovery.h5")


def test_a_model_gives_the_kernel_that_it_gave(sample):
    with torch.no_grad():
        kernel = load_model(sample / "model")[0].kernel(Context.load(sample / "context.h5"))
    same(kernel.values, read_json(sample / "expected.json")["model"])


def test_a_run_goes_on_where_it_was_stopped(sample, tmp_path):
    out = tmp_path / "model"
    shutil.copytree(sample / "model", out)
    systems, recipe = SystemSet.load(sample / "systems.h5"), Recipe(epochs=4, every=1, precision="float64")
    assert systems.names == ("short", "middle", "long")
    progress = train("nao", NAOOptions(dk=2), systems, 30, recipe, out, resume=True)
    assert progress.epoch == 4
    assert len((out / "log.jsonl").read_text().splitlines()) == 4
