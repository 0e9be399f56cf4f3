"""Trained models as directories: `config.json` says what they are, `weights.safetensors` holds the numbers."""

from dataclasses import asdict
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

from torch import Tensor

from kernelmap.errors import InputError
from kernelmap.files import read_json, read_tensors, write_json, write_tensors
from kernelmap.maps import MAPS, Componentwise, ContextShape, KernelMap, MapOptions

FORMAT = 1


def map_kind(name: str) -> type[KernelMap]:
    """A kind of map by its name in the registry."""
    for known, kind in MAPS.items():
        if known == name:
            return kind
    raise InputError(f"there is no map named {name!r}; there are {', '.join(MAPS)}.")


def build(name: str, shape: ContextShape, options: Any) -> KernelMap:
    """A new map by its name in the registry; where the options say so, one for every component of the output."""
    kind = map_kind(name)
    if isinstance(options, MapOptions) and options.per_component and shape.x.components > 1:
        return Componentwise(kind, shape, options)
    return kind(shape, options)


def map_name(model: KernelMap) -> str:
    wanted = model.kind if isinstance(model, Componentwise) else type(model)
    return next(name for name, kind in MAPS.items() if wanted is kind)


def save_model(
    directory: Path | str, model: KernelMap, about: dict[str, Any], weights: dict[str, Tensor] | None = None
) -> None:
    """Write a model; `weights` replaces the model's own, and `about` tells where it comes from."""
    directory = Path(directory)
    config = {
        "format": FORMAT,
        "map": map_name(model),
        "shape": asdict(model.shape),
        "options": asdict(model.options),
        "about": about,
    }
    write_tensors(directory / "weights.safetensors", model.state_dict() if weights is None else weights)
    write_json(directory / "config.json", config)


def load_model(name: Path | str) -> tuple[KernelMap, dict[str, Any]]:
    """A shipped model by name, or a directory written by `save_model`, and what is known about it."""
    directory = find_model(name)
    config = read_json(directory / "config.json")
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        found = config.get("format") if isinstance(config, dict) else "none"
        raise InputError(f"{directory / 'config.json'} is of format {found}, this version reads format {FORMAT}.")
    try:
        values = {name: tuple(v) if isinstance(v, list) else v for name, v in config["options"].items()}
        options = map_kind(config["map"]).Options(**values)
        model, about = build(config["map"], ContextShape.from_json(config["shape"]), options), config["about"]
    except (KeyError, TypeError) as error:
        raise InputError(f"{directory / 'config.json'} does not describe a model of this version ({error}).") from error
    weights, _ = read_tensors(directory / "weights.safetensors")
    try:
        model.to(weights["u_std"].dtype).load_state_dict(weights)
    except (RuntimeError, KeyError) as error:
        raise InputError(f"the weights in {directory} do not fit its config.json: {error}") from error
    return model.eval(), about


def find_model(name: Path | str) -> Path:
    if (Path(name) / "config.json").is_file():
        return Path(name)
    if str(name) in shipped_models():
        return shipped_directory() / str(name)
    raise InputError(
        f"{name} is neither a model directory (with config.json and weights.safetensors) nor a shipped model; "
        f"shipped are: {', '.join(shipped_models()) or 'none'}."
    )


def shipped_directory() -> Path:
    return Path(str(package_files("kernelmap"))) / "models"


def shipped_models() -> list[str]:
    return sorted(path.parent.name for path in shipped_directory().glob("*/config.json"))
