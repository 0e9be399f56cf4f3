"""Files of measurements, in every format that is read, and odd ones."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np
import torch
from scipy.io import savemat

from contract import build
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.discovery import discover
from kernelmap.io import load_discovery, load_model, read_measurements
from kernelmap.problems.darcy.fields import microstructures, sources
from kernelmap.problems.darcy.scheme import pressures
from mutation import Kind, copy_of


def mesh() -> dict[str, Any]:
    x = np.linspace(0, 30, 121)
    u = np.stack([np.sin(k * x) for k in (1, 2, 3)])
    return {"x": x, "u": u, "f": 0.3 * u + 0.01, "radius": np.array(11.0)}


def series() -> dict[str, Any]:
    u = np.sin(np.arange(90) ** 1.3)
    f = np.convolve(u, np.exp(-np.arange(20) / 4))[:90]
    return {"t": np.arange(90.0), "u": u, "f": f, "radius": np.array(15.0)}


def _table(directory: Path) -> Path:
    days = np.datetime64("2003-01-01") + np.arange(90)
    rows = zip(days, series()["u"], series()["f"], strict=True)
    lines = ["# radius = 15", "day,rain,f", *(",".join(map(str, row)) for row in rows)]
    (directory / "mine.csv").write_text("\n".join(lines))
    return directory / "mine.csv"


def fields() -> dict[str, Any]:
    """Pressures of a porous medium."""
    g = sources(7, range(20))
    axis = np.linspace(0, 1, 7)
    return {"x1": axis, "x2": axis, "u": g, "f": pressures(microstructures(7, [0])[0], g)}


def _odd_entries(entries: dict[str, Any], random: Random) -> dict[str, Any]:
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


def _measurements(
    name: str, write: Callable[[Path, dict[str, Any]], None], entries: Callable[[], dict[str, Any]] = mesh
) -> Kind:
    def good(directory: Path) -> Path:
        write(directory / name, entries())
        return directory / name

    read = _discover_flow if entries is fields else _discover
    return Kind(good, read, lambda path, random: write(path, _odd_entries(entries(), random)))


def _discover(path: Path) -> None:
    """What `check` accepts, `discover` answers or refuses; with few components, which takes a moment."""
    context = read_measurements(path).context
    if context.d * context.y.size < 2e5:
        json.dumps(discover(build("kernel1d", context), context).to_json(), allow_nan=False)


def _discover_flow(path: Path) -> None:
    context = read_measurements(path).context
    json.dumps(discover(load_model("darcy")[0], context).to_json(), allow_nan=False)


def _saved_discovery(directory: Path) -> Path:
    def make(out: Path) -> None:
        np.savez(out / "fields.npz", **fields())
        discover(load_model("darcy")[0], read_measurements(out / "fields.npz").context).save(out / "discovery.h5")

    return copy_of(directory, "discovery", make) / "discovery.h5"


def _predict(path: Path) -> None:
    """A discovery that loads predicts."""
    found = load_discovery(path)
    found.predict(torch.ones(found.kernel.y.size, 2, dtype=torch.float64))


def _context_file(directory: Path) -> Path:
    y = grids.radii(0.5, 22)
    generator = torch.Generator().manual_seed(0)
    U = torch.randn(22, 40, generator=generator, dtype=torch.float64)
    Context(U, U.sum(dim=0, keepdim=True), y, grids.point()).save(directory / "context.h5")
    return directory / "context.h5"


MEASUREMENTS: dict[str, Kind] = {
    "npz": _measurements("mine.npz", lambda path, entries: np.savez(path, **entries)),
    "npz-compressed": _measurements("small.npz", lambda path, entries: np.savez_compressed(path, **entries)),
    "hdf5": _measurements("mine.h5", _write_hdf5),
    "mat": _measurements("mine.mat", lambda path, entries: savemat(path, entries)),
    "mat-compressed": _measurements("small.mat", lambda path, entries: savemat(path, entries, do_compression=True)),
    "series": _measurements("series.npz", lambda path, entries: np.savez(path, **entries), series),
    "csv": Kind(_table, _discover),
    "context": Kind(_context_file, _discover),
    "fields": _measurements("fields.npz", lambda path, entries: np.savez(path, **entries), fields),
    "discovery": Kind(_saved_discovery, _predict),
}
