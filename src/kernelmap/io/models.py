"""Trained models as directories: `config.json` says what they are, `weights.safetensors` holds the numbers."""

import json
from dataclasses import asdict
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.files import (
    is_file,
    parse_json,
    read_json,
    read_tensors,
    reading,
    strict,
    write_json,
    write_tensors,
)
from kernelmap.core.progress import notice
from kernelmap.maps import MAPS, KernelMap

FORMAT = 1
LARGEST_GRID = 10**7
REMEDY = "train or import the model again"


def save_model(directory: Path | str, model: KernelMap, about: dict[str, Any]) -> None:
    """Write a model; `about` tells where it comes from.

    The weights carry the configuration too: a process killed between the two files leaves a model that is one.
    """
    directory = Path(directory)
    config = strict(
        {
            "format": FORMAT,
            "map": model.name,
            "shape": asdict(model.shape),
            "options": asdict(model.options),
            "about": about,
        }
    )
    write_tensors(directory / "weights.safetensors", model.state_dict(), {"config": json.dumps(config)})
    write_json(directory / "config.json", config)


def load_model(name: Path | str) -> tuple[KernelMap, dict[str, Any]]:
    """A shipped model by name, or a directory written by `save_model`, and what is known about it."""
    directory = find_model(name)
    config = read_json(directory / "config.json")
    path = directory / "weights.safetensors"
    weights, metadata = read_tensors(path)
    own = parse_json(metadata["config"], path) if "config" in metadata else config
    if own != config and _differ_in_history(own, config):
        notice(f"{directory / 'config.json'} is not the one that its weights were written with; theirs is used.")
        config = own
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        found = config.get("format") if isinstance(config, dict) else "none"
        raise InputError(f"{directory / 'config.json'} is of format {found}, this version reads format {FORMAT}.")
    with reading(directory / "config.json", "description of a model of this version", REMEDY):
        try:
            _check_sizes(config, weights)
            model, about = _build(config), config["about"]
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{directory / 'config.json'} does not describe a model of this version ({error}); {REMEDY}."
            ) from error
        if not isinstance(about, dict):
            raise InputError(f"{directory / 'config.json'} does not say what the model is about; {REMEDY}.")
    with reading(path, f"set of weights for {directory / 'config.json'}", REMEDY):
        _check_weights(model, weights, directory)
        if own != config:
            raise InputError(f"{directory / 'config.json'} was changed since its weights were written; {REMEDY}.")
        model.to(weights["u_std"].dtype).load_state_dict(weights)
    return model.eval(), about


def _build(config: dict[str, Any]) -> KernelMap:
    kind = MAPS[config["map"]]
    values = {name: _tuples(v) for name, v in config["options"].items()}
    return kind.build(ContextShape.from_json(config["shape"]), kind.saved_options(values))


def _differ_in_history(own: Any, config: Any) -> bool:
    """As after a kill between two files of one run: the same model, at another moment of its training."""
    if not (isinstance(own, dict) and isinstance(config, dict)):
        return False
    return own.keys() == config.keys() and {**own, "about": None} == {**config, "about": None}


def _check_sizes(config: dict[str, Any], weights: dict[str, Tensor]) -> None:
    """Before anything is built: no size is larger than the weights can bear out."""
    numbers = sum(tensor.numel() for tensor in weights.values())
    shape, options = config["shape"], config["options"]
    bounds = [(options, max(1000, numbers), "numbers in the weights")]
    bounds += [(shape, LARGEST_GRID, "values that a grid may have")]
    for values, most, what in bounds:
        flat = [(key, v) for key, value in values.items() for v in (value if isinstance(value, list) else [value])]
        for key, value in flat:
            if type(value) is int and abs(value) > most:
                raise InputError(f"config.json says {key} = {value}, more than the {most} {what}; {REMEDY}.")


def _check_weights(model: KernelMap, weights: dict[str, Tensor], directory: Path) -> None:
    expected = model.state_dict()
    wrong = [name for name in expected if name not in weights or weights[name].shape != expected[name].shape]
    wrong += [name for name in weights if name not in expected]
    if wrong:
        raise InputError(
            f"the weights in {directory} do not fit its config.json: see {', '.join(wrong[:5])}; {REMEDY}."
        )
    if bad := [name for name, tensor in weights.items() if tensor.is_floating_point() and not tensor.isfinite().all()]:
        raise InputError(f"the weights in {directory} are not all numbers: see {', '.join(bad[:5])}; {REMEDY}.")
    if weights["u_std"].dtype not in (torch.float32, torch.float64):
        raise InputError(f"the weights in {directory} are {weights['u_std'].dtype}; float32 or float64 is read.")


def find_model(name: Path | str) -> Path:
    """A shipped model's name wins over a directory of that name; `./name` or a `Path` means the directory."""
    if isinstance(name, str) and name in shipped_models():
        if is_file(Path(name) / "config.json"):
            notice(f"{name} is the shipped model; for the directory of that name write ./{name}.")
        return shipped_directory() / name
    if is_file(Path(name) / "config.json"):
        return Path(name)
    raise InputError(
        f"{name} is neither a model directory (with config.json and weights.safetensors) nor a shipped model; "
        f"shipped are: {', '.join(shipped_models()) or 'none'}."
    )


def shipped_directory() -> Path:
    return Path(str(package_files("kernelmap"))) / "models"


def shipped_models() -> list[str]:
    return sorted(path.parent.name for path in shipped_directory().glob("*/config.json"))


def _tuples(value: Any) -> Any:
    """JSON has lists where options have tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
