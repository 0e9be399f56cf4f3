"""Files of every kind that kernelmap reads, mutants of them, and what reading one ends in: a sentence or a value."""

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np
import torch
from safetensors.torch import load_file, save_file
from scipy.io import savemat

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.systems import SystemSet
from kernelmap.discovery import discover
from kernelmap.io import load_model, read_measurements, save_model
from kernelmap.maps import NAO, NAOOptions
from kernelmap.paper.released import import_released
from kernelmap.problems.cache import cached
from kernelmap.problems.mechanics.parts import part_path, read_part, write_part
from kernelmap.problems.radial import RadialData
from kernelmap.training import Recipe, train

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


@dataclass(frozen=True)
class Kind:
    """A kind of file: how to write a good one into a directory, and how to read it (raising InputError if it must)."""

    write: Callable[[Path], Path]
    read: Callable[[Path], None]
    odd: Callable[[Path, Random], None] | None = None


def mutate_bytes(path: Path, random: Random) -> None:
    """Bytes flipped, cut, doubled, lost, or set to extremes."""
    data = bytearray(path.read_bytes())
    for _ in range(random.choice([1, 1, 2, 8])):
        if not data:
            break
        place, length = random.randrange(len(data)), random.choice([1, 2, 4, 8, 64])
        place = random.choice([place, min(place, random.randrange(1, 600))])  # headers are short
        action = random.randrange(6)
        if action == 0:
            data[place % len(data)] ^= 1 << random.randrange(8)
        elif action == 1:
            data[place : place + length] = bytes([random.choice([0, 255, 127, 128])]) * length
        elif action == 2:
            del data[place:]
        elif action == 3:
            del data[place : place + length]
        elif action == 4:
            data[place:place] = data[place : place + length]
        else:
            data[place : place + length] = random.randbytes(length)
    path.write_bytes(data)


def mutant(kind: Kind, directory: Path, seed: int) -> Path:
    """A damaged or odd file; the same for the same seed."""
    random = Random(seed)
    path = kind.write(directory)
    if kind.odd is not None and random.random() < 0.5:
        kind.odd(path, random)
    else:
        mutate_bytes(path, random)
    return path


def outcome(kind: Kind, path: Path) -> str:
    """accepted or refused; anything else is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            kind.read(path)
        except InputError:
            return "refused"
    return "accepted"


# Measurements.


def _mesh() -> dict[str, Any]:
    x = np.linspace(0, 30, 121)
    u = np.stack([np.sin(k * x) for k in (1, 2, 3)])
    return {"x": x, "u": u, "f": 0.3 * u + 0.01, "radius": np.array(11.0)}


def _odd_entries(random: Random) -> dict[str, Any]:
    entries = _mesh()
    name = random.choice(list(entries))
    values = np.asarray(entries[name])
    dtypes = ["f4", ">f8", ">i2", "g", "c16", "?", "u1", "f2", "S3", "m8[s]"]
    choices: list[Callable[[], Any]] = [
        lambda: values.astype(random.choice(dtypes)),
        lambda: values * random.choice([1e200, 1e-300, 1e308, -1.0, 0.0, 1e5, float("inf"), float("nan")]),
        lambda: np.empty((0, *values.shape[1:])),
        lambda: values.ravel()[:1],
        lambda: values.T,
        lambda: values[None],
        lambda: np.array("zero"),
        lambda: np.array(1e308),
    ]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if random.random() < 0.2:
            del entries[name]
        else:
            entries[name] = random.choice(choices)()
    return entries


def _write_hdf5(path: Path, entries: dict[str, Any]) -> None:
    with h5py.File(path, "w") as file:
        for name, values in entries.items():
            try:
                file[name] = str(values) if values.dtype.kind in "SU" else values
            except TypeError:
                file[name] = 1


def _measurements(name: str, write: Callable[[Path, dict[str, Any]], None]) -> Kind:
    def good(directory: Path) -> Path:
        write(directory / name, _mesh())
        return directory / name

    return Kind(good, _discover, lambda path, random: write(path, _odd_entries(random)))


_radial: list[Any] = []


def _discover(path: Path) -> None:
    """What `check` accepts, `discover` answers or refuses."""
    if not _radial:
        _radial.append(load_model("radial")[0])
    context = read_measurements(path).context
    if context.d * context.y.size < 2e5:
        json.dumps(discover(_radial[0], context).to_json(), allow_nan=False)


def _context_file(directory: Path) -> Path:
    y = grids.radii(0.5, 22)
    generator = torch.Generator().manual_seed(0)
    U = torch.randn(22, 40, generator=generator, dtype=torch.float64)
    Context(U, U.sum(dim=0, keepdim=True), y, grids.point()).save(directory / "context.h5")
    return directory / "context.h5"


# Models.


def _systems(pairs: int = 24) -> SystemSet:
    generator = torch.Generator().manual_seed(0)
    grid = grids.radii(0.5, 6)
    u = torch.randn(1, pairs, 6, generator=generator, dtype=torch.float64)
    f = u.sum(dim=-1, keepdim=True).expand(2, -1, -1) * torch.tensor([1.0, 2.0], dtype=torch.float64)[:, None, None]
    return SystemSet(("a", "b"), u, f.contiguous(), grid, grids.point(), None, {"problem": "test"})


def _train(out: Path, resume: bool) -> None:
    train("nao", NAOOptions(dk=2, hidden=(4, 4)), _systems(), 4, RECIPE, out, about={}, resume=resume)


_made: dict[str, Path] = {}


def _copy_of(directory: Path, name: str, make: Callable[[Path], None]) -> Path:
    """Made once in a process, copied for every mutant."""
    if name not in _made:
        _made[name] = Path(tempfile.mkdtemp(prefix=f"kernelmap-{name}-"))
        make(_made[name])
    copy = directory / name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(_made[name], copy)
    return copy


def _model(directory: Path, file: str) -> Path:
    def make(out: Path) -> None:
        torch.manual_seed(0)
        context = _systems().batch(torch.arange(4)[None], torch.arange(1))
        from kernelmap.core.domain import ContextShape

        save_model(out, NAO(ContextShape.of(context), NAOOptions(dk=2, hidden=(4, 4))), {"problem": "test"})
        # As models were written before the weights carried the configuration: config.json alone is read.
        weights = load_file(out / "weights.safetensors")
        save_file(weights, out / "weights.safetensors")

    return _copy_of(directory, "model", make) / file


def _run(directory: Path, file: str) -> Path:
    return _copy_of(directory, "run", lambda out: _train(out, resume=False)) / file


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


# What is generated.


def _cache(directory: Path) -> Path:
    os.environ["KERNELMAP_CACHE"] = str(directory)
    code = directory / "code"
    code.mkdir(exist_ok=True)
    cached("systems.h5", code, _systems)
    return next(directory.glob("code-*/systems.h5"))


def _read_cache(path: Path) -> None:
    os.environ["KERNELMAP_CACHE"] = str(path.parents[1])
    assert cached("systems.h5", path.parents[1] / "code", _systems).checksum() == _systems().checksum()


def _part(directory: Path) -> Path:
    write_part(directory, 0, "plan", *PARTS)
    return part_path(directory, 0)


def _read_part(path: Path) -> None:
    found = read_part(path.parent, 0, "plan", (3, 2, 16))
    assert found is None or all(np.array_equal(a, b) for a, b in zip(found, PARTS, strict=True))


def _released() -> dict[str, Any]:
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
    torch.save(_released(), directory / "released.ckpt")
    return directory / "released.ckpt"


def _odd_checkpoint(path: Path, random: Random) -> None:
    weights: Any = _released()
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
    systems = _systems()
    import_released(path, RadialData(systems, systems))


KINDS: dict[str, Kind] = {
    "npz": _measurements("mine.npz", lambda path, entries: np.savez(path, **entries)),
    "npz-compressed": _measurements("small.npz", lambda path, entries: np.savez_compressed(path, **entries)),
    "hdf5": _measurements("mine.h5", _write_hdf5),
    "mat": _measurements("mine.mat", lambda path, entries: savemat(path, entries)),
    "mat-compressed": _measurements("small.mat", lambda path, entries: savemat(path, entries, do_compression=True)),
    "context": Kind(_context_file, _discover),
    "config": Kind(lambda d: _model(d, "config.json"), lambda p: _evaluate(p), _odd_json),
    "weights": Kind(lambda d: _model(d, "weights.safetensors"), lambda p: _evaluate(p), _odd_tensors),
    "state": Kind(lambda d: _run(d, "state.safetensors"), lambda p: _train(p.parent, resume=True), _odd_tensors),
    "log": Kind(lambda d: _run(d, "log.jsonl"), lambda p: _train(p.parent, resume=True), _odd_json),
    "cache": Kind(_cache, _read_cache),
    "part": Kind(_part, _read_part),
    "checkpoint": Kind(_checkpoint, _import, _odd_checkpoint),
}


def _evaluate(path: Path) -> None:
    """A model that loads is used too."""
    model, _ = load_model(path.parent)
    context = _systems().batch(torch.arange(4)[None], torch.arange(1))
    model.double()(context)
