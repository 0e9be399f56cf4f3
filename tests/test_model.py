"""Models as directories: they come back as they were, and what does not fit is refused."""

import json
from dataclasses import replace

import pytest
import torch

from examples import CONTEXTS, radial_context
from kernelmap.context import Context
from kernelmap.errors import InputError
from kernelmap.files import read_tensors, write_tensors
from kernelmap.maps import MAPS, ContextShape, KernelMap, LocalOptions, MapOptions, MediumOptions, PosteriorOptions
from kernelmap.microstructure import interior
from kernelmap.model import build, find_model, load_model, save_model, shipped_models

CONTEXT = radial_context(40, 6)
SQUARE = CONTEXTS["square"]()
OPTIONS = {
    "posterior": PosteriorOptions(8, 4, 3, 2),
    "local-posterior": LocalOptions(1),
    "solution-posterior": LocalOptions(1),
    "material-posterior": MediumOptions(),
}


def clamped_context() -> Context:
    """Displacements of two components, zero on the boundary."""
    context = CONTEXTS["vector"](n=4)
    return replace(context, F=context.F * interior(context.x).repeat(2)[:, None])


def context_for(name: str) -> Context:
    if name == "material-posterior":
        return clamped_context()
    return SQUARE if isinstance(OPTIONS.get(name), LocalOptions) else CONTEXT


def new(name: str, dtype: torch.dtype = torch.float64) -> KernelMap:
    """A small map with random weights, standardised as after training."""
    torch.manual_seed(0)
    context = context_for(name)
    model = build(name, ContextShape.of(context), OPTIONS.get(name, MapOptions(dk=4))).to(dtype)
    model.standardise(3 * context.U + 0.2, 5 * context.F - 1)
    return model


@pytest.fixture
def saved(tmp_path):
    save_model(tmp_path / "model", new("nao"), {"problem": "radial"})
    return tmp_path / "model"


def rewrite(directory, **changes) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", MAPS)
def test_a_saved_model_comes_back(tmp_path, name, dtype):
    model, about = new(name, dtype), {"problem": "radial", "steps": 3}
    save_model(tmp_path / "model", model, about)
    loaded, known = load_model(tmp_path / "model")
    assert type(loaded) is MAPS[name]
    assert (loaded.shape, loaded.options, known) == (model.shape, model.options, about)
    assert loaded.u_std.dtype == dtype
    assert not loaded.training
    assert torch.equal(loaded(context_for(name)).values, model(context_for(name)).values)


@pytest.mark.parametrize("normaliser", ["continuous", "functions", "tokens", "array"])
def test_options_come_back(tmp_path, normaliser):
    torch.manual_seed(1)
    options = MapOptions(dk=3, layers=3, heads=2, normaliser=normaliser)
    model = build("nao", ContextShape.of(CONTEXT), options).double()
    save_model(tmp_path / "model", model, {})
    loaded, _ = load_model(tmp_path / "model")
    assert loaded.options == options
    assert torch.equal(loaded(CONTEXT).values, model(CONTEXT).values)


def test_other_weights_may_be_saved_in_place_of_the_models_own(tmp_path):
    model = new("nao")
    averaged = {name: value + 0.01 for name, value in model.state_dict().items()}
    save_model(tmp_path / "model", model, {}, averaged)
    loaded, _ = load_model(tmp_path / "model")
    for name, value in loaded.state_dict().items():
        assert torch.equal(value, averaged[name])


def test_an_unknown_model_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no-such-model is neither a model directory .* nor a shipped model"):
        load_model("no-such-model")
    with pytest.raises(InputError, match="neither a model directory"):
        load_model(tmp_path)


def test_shipped_models_are_found_by_name(saved, monkeypatch):
    monkeypatch.setattr("kernelmap.model.shipped_directory", lambda: saved.parent)
    assert shipped_models() == ["model"]
    assert find_model("model") == saved
    loaded, about = load_model("model")
    assert about == {"problem": "radial"}
    assert torch.equal(loaded(CONTEXT).values, new("nao")(CONTEXT).values)
    with pytest.raises(InputError, match="shipped are: model"):
        load_model("models")


def test_an_unknown_map_is_refused(saved):
    with pytest.raises(InputError, match="no map named 'transformer'; there are nao, "):
        build("transformer", ContextShape.of(CONTEXT), MapOptions())
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
