"""Models as directories: they come back as they were, and what does not fit is refused."""

import json

import pytest
import torch

from examples import radial_context
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.files import read_tensors, write_tensors
from kernelmap.io.models import find_model, load_model, save_model, shipped_models
from kernelmap.maps import MAPS, KernelMap, NAOOptions

CONTEXT = radial_context(40, 6)


def new(name: str, dtype: torch.dtype = torch.float64) -> KernelMap:
    """A small map with random weights, standardised as after training."""
    torch.manual_seed(0)
    model = MAPS[name].build(ContextShape.of(CONTEXT), NAOOptions(dk=4)).to(dtype)
    model.standardise(3 * CONTEXT.U + 0.2, 5 * CONTEXT.F - 1)
    return model


@pytest.fixture
def saved(tmp_path):
    save_model(tmp_path / "model", new("nao"), {"problem": "radial"})
    return tmp_path / "model"


def rewrite(directory, **changes) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("normaliser", ["continuous", "functions", "tokens", "array"])
def test_options_come_back(tmp_path, normaliser):
    torch.manual_seed(1)
    options = NAOOptions(dk=3, layers=3, heads=2, normaliser=normaliser)
    model = MAPS["nao"].build(ContextShape.of(CONTEXT), options).double()
    save_model(tmp_path / "model", model, {})
    loaded, _ = load_model(tmp_path / "model")
    assert loaded.options == options
    assert torch.equal(loaded(CONTEXT).values, model(CONTEXT).values)


def test_an_unknown_model_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no-such-model is neither a model directory .* nor a shipped model"):
        load_model("no-such-model")
    with pytest.raises(InputError, match="neither a model directory"):
        load_model(tmp_path)


def test_shipped_models_are_found_by_name(saved, monkeypatch):
    monkeypatch.setattr("kernelmap.io.models.shipped_directory", lambda: saved.parent)
    assert shipped_models() == ["model"]
    assert find_model("model") == saved
    loaded, about = load_model("model")
    assert about == {"problem": "radial"}
    assert torch.equal(loaded(CONTEXT).values, new("nao")(CONTEXT).values)
    with pytest.raises(InputError, match="shipped are: model"):
        load_model("models")


def test_an_unknown_map_is_refused(saved):
    with pytest.raises(InputError, match="no map named 'transformer'; there are afno, "):
        MAPS["transformer"].build(ContextShape.of(CONTEXT), NAOOptions())
    rewrite(saved, map="transformer")
    with pytest.raises(InputError, match="no map named 'transformer'"):
        load_model(saved)


@pytest.mark.parametrize("found", [0, 99, None])
def test_an_unknown_format_is_refused(saved, found):
    rewrite(saved, format=found)
    with pytest.raises(InputError, match=f"is of format {found}, this version reads format 1"):
        load_model(saved)


def test_a_config_that_is_no_object_is_refused(saved):
    (saved / "config.json").write_text("[1, 2]")
    with pytest.raises(InputError, match="is of format none"):
        load_model(saved)


@pytest.mark.parametrize("key", ["map", "shape", "options", "about"])
def test_an_incomplete_config_is_refused(saved, key):
    config = json.loads((saved / "config.json").read_text())
    del config[key]
    (saved / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=rf"config\.json does not describe a model of this version \('{key}'\)"):
        load_model(saved)


def test_an_option_of_another_version_is_refused(saved):
    rewrite(saved, options={"dk": 4, "temperature": 1.0})
    with pytest.raises(InputError, match=r"does not describe a model of this version.*temperature"):
        load_model(saved)


def test_a_config_cut_short_is_refused(saved):
    text = (saved / "config.json").read_text()
    (saved / "config.json").write_text(text[: len(text) // 2])
    with pytest.raises(InputError, match="not valid JSON"):
        load_model(saved)


def test_weights_of_another_size_are_refused(saved):
    rewrite(saved, options={"dk": 5})
    with pytest.raises(InputError, match=r"the weights in .*model do not fit its config\.json"):
        load_model(saved)


@pytest.mark.parametrize("lacking", ["u_std", "projections.0.weight"])
def test_weights_that_are_missing_are_refused(saved, lacking):
    weights, _ = read_tensors(saved / "weights.safetensors")
    del weights[lacking]
    write_tensors(saved / "weights.safetensors", weights)
    with pytest.raises(InputError, match=f"do not fit its config.json.*(?s:.*){lacking}"):
        load_model(saved)


def test_a_text_file_holds_no_weights(saved):
    (saved / "weights.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(InputError, match="not a readable safetensors file"):
        load_model(saved)


def test_missing_weights_are_named(saved):
    (saved / "weights.safetensors").unlink()
    with pytest.raises(InputError, match=r"expected a safetensors file at .*weights\.safetensors"):
        load_model(saved)
