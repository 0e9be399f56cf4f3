"""The state of a training run in one safetensors file: written whole or not at all, and never unpickled."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from kernelmap.core.errors import InputError
from kernelmap.core.files import parse_json, read_tensors, reading, strict, write_tensors


@dataclass
class Progress:
    """Where a run stands."""

    epoch: int = 0
    seconds: float = 0.0
    best_epoch: int = 0
    best_loss: float = float("inf")


def save_state(
    path: Path, module: nn.Module, optimizers: Sequence[Optimizer], progress: Progress, run: dict[str, Any]
) -> None:
    """`run` describes the run; a state is only resumed into a run of the same description."""
    tensors = {f"model.{name}": value for name, value in module.state_dict().items()}
    for number, optimizer in enumerate(optimizers):
        for index, slots in optimizer.state_dict()["state"].items():
            prefix = f"optimizer.{number}.{index}"
            tensors |= {f"{prefix}.{slot}": value for slot, value in slots.items() if isinstance(value, Tensor)}
    described = {"progress": strict(vars(progress)), "run": strict(run)}
    write_tensors(path, tensors, {key: json.dumps(value, sort_keys=True) for key, value in described.items()})


def load_state(
    path: Path,
    module: nn.Module,
    optimizers: Sequence[Optimizer],
    run: dict[str, Any],
    defaults: dict[str, dict[str, Any]],
) -> Progress:
    """defaults: by parts of the run; an option that came after the state was written had its default then."""
    tensors, metadata = read_tensors(path)
    if "run" not in metadata or "progress" not in metadata:
        raise InputError(f"{path} is not the state of a training run.")
    stored = parse_json(metadata["run"], path)
    wanted = json.loads(json.dumps(strict(run)))
    if not isinstance(stored, dict):
        raise InputError(f"{path} is not the state of a training run.")
    for part, values in json.loads(json.dumps(strict(defaults))).items():
        if isinstance(stored.get(part), dict):
            stored[part] = values | stored[part]
    if stored != wanted:
        changed = [key for key in sorted(wanted | stored) if wanted.get(key) != stored.get(key)]
        old, new = ({key: side.get(key) for key in changed} for side in (stored, wanted))
        raise InputError(
            f"{path} belongs to another run: it was {old}, asked is {new}. Use the same options or another --out."
        )
    with reading(path, "state of this run", "begin anew with another --out"):
        _restore(tensors, module, optimizers)
        return _progress(parse_json(metadata["progress"], path))


def _restore(tensors: dict[str, Tensor], module: nn.Module, optimizers: Sequence[Optimizer]) -> None:
    model = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
    try:
        module.load_state_dict(model)
    except RuntimeError as error:
        raise InputError(
            f"the state was written by another version: {error}. Begin anew with another --out."
        ) from error
    slots: list[dict[int, dict[str, Tensor]]] = [{} for _ in optimizers]
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, number, index, slot = name.split(".")
            slots[int(number)].setdefault(int(index), {})[slot] = value
    for optimizer, state in zip(optimizers, slots, strict=True):
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _progress(values: dict[str, Any]) -> Progress:
    """JSON has no infinity: a run without a best loss yet says null."""
    best = values["best_loss"]
    numbers = (values["epoch"], values["best_epoch"], values["seconds"], 0 if best is None else best)
    if not all(isinstance(value, (int, float)) for value in numbers) or min(numbers[:3]) < 0:
        raise ValueError(f"progress {values}")
    return Progress(int(numbers[0]), float(numbers[2]), int(numbers[1]), inf if best is None else float(best))
