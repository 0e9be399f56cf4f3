"""Models, runs, caches, parts and checkpoints, and odd ones."""

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from kernelmap.core import grids
from kernelmap.core.domain import ContextShape
from kernelmap.core.systems import SystemSet
from kernelmap.io import load_model, save_model
from kernelmap.maps import NAO, NAOOptions
from kernelmap.paper.released import import_released
from kernelmap.problems.cache import cached
from kernelmap.problems.mechanics.parts import part_path, read_part, write_part
from kernelmap.problems.radial import RadialData
from kernelmap.training import Recipe, train
from mutation import Kind, copy_of

ODD: list[Any] = [
    None,
    -1,
    0,
    10**12,
    2**63,
    1e308,
    -0.5,
    "x",
    "",
    [],
    {},
    [[]],
    True,
    "\x1b[31m",
    {"a": None},
    "é" * 9,
]
RECIPE = Recipe(epochs=2, batch=4, every=1)
PARTS = (np.ones((3, 2, 16), np.float32), np.array([True, False, True]))


def two_systems(pairs: int = 24) -> SystemSet:
    generator = torch.Generator().manual_seed(0)
    grid = grids.radii(0.5, 6)
    u = torch.randn(1, pairs, 6, generator=generator, dtype=torch.float64)
    f = u.sum(dim=-1, keepdim=True).expand(2, -1, -1) * torch.tensor([1.0, 2.0], dtype=torch.float64)[:, None, None]
    return SystemSet(("a", "b"), u, f.contiguous(), grid, grids.point(), None, {"problem": "test"})


def train_short(out: Path, resume: bool) -> None:
    train("nao", NAOOptions(dk=2, hidden=(4, 4)), two_systems(), 4, RECIPE, out, about={}, resume=resume)


def _model(directory: Path, file: str) -> Path:
    def make(out: Path) -> None:
        torch.manual_seed(0)
        context = two_systems().batch(torch.arange(4)[None], torch.arange(1))
        save_model(out, NAO(ContextShape.of(context), NAOOptions(dk=2, hidden=(4, 4))), {"problem": "test"})
        # As models were written before the weights carried the configuration: config.json alone is read.
        weights = load_file(out / "weights.safetensors")
        save_file(weights, out / "weights.safetensors")

    return copy_of(directory, "model", make) / file


def _run(directory: Path, file: str) -> Path:
    return copy_of(directory, "run", lambda out: train_short(out, resume=False)) / file


def _odd_json(path: Path, random: Random) -> None:
    """One value at any depth replaced, removed or added."""
    value = json.loads(path.read_text().splitlines()[0] if path.suffix == ".jsonl" else path.read_text())
    node = value
    while True:
        key = random.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if not isinstance(node[key], (dict, list)) or not node[key] or random.random() < 0.3:
            break
        node = node[key]
    if random.random() < 0.2:
        del node[key]
    else:
        node[key] = random.choice(ODD)
    path.write_text(json.dumps(value))


def _odd_tensors(path: Path, random: Random) -> None:
    tensors = load_file(path)
    name = random.choice(sorted(tensors))
    tensor = tensors[name]
    tensors[name] = random.choice(
        [tensor.half(), tensor.long(), tensor * float("nan"), tensor[None], tensor.flatten()[:0], tensor.double()]
    )
    if random.random() < 0.3:
        del tensors[name]
    if random.random() < 0.3:
        tensors[random.choice(["optimizer.9.0.x", "optimizer.x", "model.", "é", "u_std"])] = torch.zeros(2)
    metadata = random.choice([{}, {"run": "{}", "progress": "{}"}, {"run": "[", "progress": "1"}, {"config": "[1]"}])
    save_file(tensors, path, metadata)


def _evaluate(path: Path) -> None:
    """A model that loads is used too."""
    model, _ = load_model(path.parent)
    context = two_systems().batch(torch.arange(4)[None], torch.arange(1))
    model.double()(context)


def _cache(directory: Path) -> Path:
    os.environ["KERNELMAP_CACHE"] = str(directory)
    code = directory / "code"
    code.mkdir(exist_ok=True)
    cached("systems.h5", code, two_systems)
    return next(directory.glob("code-*/systems.h5"))


def _read_cache(path: Path) -> None:
    os.environ["KERNELMAP_CACHE"] = str(path.parents[1])
    assert cached("systems.h5", path.parents[1] / "code", two_systems).checksum() == two_systems().checksum()


def _part(directory: Path) -> Path:
    write_part(directory, 0, "plan", *PARTS)
    return part_path(directory, 0)


def _read_part(path: Path) -> None:
    found = read_part(path.parent, 0, "plan", (3, 2, 16))
    assert found is None or all(np.array_equal(a, b) for a, b in zip(found, PARTS, strict=True))


def released() -> dict[str, Any]:
    weights = {}
    for layer in range(2):
        for part in "qk":
            weights |= {f"fc{part}_{layer}_0.weight": torch.ones(2, 4), f"fc{part}_{layer}_0.bias": torch.ones(2)}
    for name in ("kernel", "fnw", "fnb"):
        for at, (rows, columns) in {0: (32, 1), 2: (64, 32), 4: (1, 64)}.items():
            weights |= {
                f"{name}.layers.{at}.weight": torch.ones(rows, columns),
                f"{name}.layers.{at}.bias": torch.ones(rows),
            }
    return weights


def _checkpoint(directory: Path) -> Path:
    torch.save(released(), directory / "released.ckpt")
    return directory / "released.ckpt"


def _odd_checkpoint(path: Path, random: Random) -> None:
    weights: Any = released()
    name = random.choice(sorted(weights))
    value = weights[name]
    weights[name] = random.choice(
        [
            value * float("nan"),
            value.long(),
            value[None],
            torch.zeros(1).expand(10**9),
            value.to(torch.complex64),
            3,
            None,
        ]
    )
    odd_keys: list[Any] = ["fcq_999999999_0.weight", "fcq_5_0.weight", 7, ("a",), "fcq_²_0.weight", "fcq_01_0.weight"]
    if random.random() < 0.5:
        weights[random.choice(odd_keys)] = torch.ones(2, 4)
    torch.save(random.choice([weights, weights, weights, [weights], {"state": weights}]), path)


def _import(path: Path) -> None:
    systems = two_systems()
    import_released(path, RadialData(systems, systems))


MODELS: dict[str, Kind] = {
    "config": Kind(lambda d: _model(d, "config.json"), lambda p: _evaluate(p), _odd_json),
    "weights": Kind(lambda d: _model(d, "weights.safetensors"), lambda p: _evaluate(p), _odd_tensors),
    "state": Kind(lambda d: _run(d, "state.safetensors"), lambda p: train_short(p.parent, resume=True), _odd_tensors),
    "log": Kind(lambda d: _run(d, "log.jsonl"), lambda p: train_short(p.parent, resume=True), _odd_json),
    "cache": Kind(_cache, _read_cache),
    "part": Kind(_part, _read_part),
    "checkpoint": Kind(_checkpoint, _import, _odd_checkpoint),
}
