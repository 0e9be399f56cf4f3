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
from kernelmap.core.kernel import Kernel
from kernelmap.discovery import discover
from kernelmap.io import load_discovery, load_model, read_candidates, read_inputs, read_measurements
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


def dated() -> dict[str, Any]:
    """Two inputs with dates, and f at dates of its own."""
    days = np.datetime64("2003-01-01") + np.arange(40)
    u = np.stack([np.sin(np.arange(40) ** 1.3), np.cos(np.arange(40) ** 1.5)])
    f = np.convolve(u[0], np.exp(-np.arange(9) / 3))[10:40]
    return {"operator": np.array("convolution"), "t": days, "u": u, "f": f, "t_f": days[10:], "radius": np.array(8.0)}


def unmeasured() -> dict[str, Any]:
    """The same with dates at which f was not measured."""
    return dated() | {"f": np.where(np.arange(30) % 3 == 0, dated()["f"], np.nan)}


def _unmeasured(directory: Path) -> Path:
    np.savez(directory / "inputs.npz", **unmeasured())
    return directory / "inputs.npz"


def rows() -> dict[str, Any]:
    """K(x, y) at five points x."""
    rng, y, x = np.random.default_rng(0), np.linspace(0, 1, 9), np.linspace(0, 1, 5)
    u = rng.normal(size=(20, 9))
    return {"y": y, "x": x, "u": u, "f": u @ np.exp(-np.abs(y[:, None] - x)) / 9}


def table() -> list[list[str]]:
    """The lines of a CSV file, field by field."""
    days = np.datetime64("2003-01-01") + np.arange(90)
    rows = zip(days, series()["u"], series()["f"], strict=True)
    return [["# radius = 15"], ["day", "rain", "f"], *([str(field) for field in row] for row in rows)]


def _write_table(path: Path, lines: list[list[str]]) -> None:
    path.write_text("\n".join(map(",".join, lines)))


def _table(directory: Path) -> Path:
    _write_table(directory / "mine.csv", table())
    return directory / "mine.csv"


ODD_FIELDS = ["", "nan", "inf", "-1e400", "NaT", "now", "3000000-01-01", "0x1", '"', "f", "x" * 200_000, "#", "é"]
ODD_LINES = ["# radius = -1", "# radius = 1e300", "# lags = periodic", "# outside = zero", "# operator = radial"]


def _odd_table(path: Path, random: Random) -> None:
    """Fields, columns and lines that are odd, lost, doubled or added."""
    lines = table()
    for _ in range(random.choice([1, 1, 3])):
        at = random.choice([0, 1, random.randrange(len(lines))])
        column = random.randrange(max(1, len(lines[at])))
        action = random.randrange(5)
        if action == 0:
            lines[at][column : column + 1] = [random.choice(ODD_FIELDS)]
        elif action == 1:
            lines.insert(at, random.choice([lines[at], [random.choice(ODD_LINES)]]))
        elif action == 2 and len(lines) > 2:
            del lines[at]
        elif action == 3:
            column = random.randrange(3)
            lines = [line[:column] + line[column + 1 :] for line in lines]
        else:
            lines = lines[: at + 2]
    _write_table(path, lines)


def fields() -> dict[str, Any]:
    """Pressures of a porous medium."""
    g = sources(7, range(20))
    axis = np.linspace(0, 1, 7)
    return {"x1": axis, "x2": axis, "u": g, "f": pressures(microstructures(7, [0])[0], g)}


def _odd_entries(entries: dict[str, Any], random: Random) -> dict[str, Any]:
    name = random.choice(list(entries))
    values = np.asarray(entries[name])
    numeric = np.arange(1.0 * values.size).reshape(values.shape) if values.dtype.kind in "MU" else values
    dtypes = ["f4", ">f8", ">i2", "g", "c16", "?", "u1", "f2", "S3", "m8[s]"]
    choices: list[Callable[[], Any]] = [
        lambda: numeric.astype(random.choice(dtypes)),
        lambda: numeric * random.choice([1e200, 1e-300, 1e308, -1.0, 0.0, 1e5, float("inf"), float("nan")]),
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
        name = "integral" if context.operator == "integral" else "kernel1d"
        json.dumps(discover(build(name, context), context).to_json(), allow_nan=False)


def _discover_flow(path: Path) -> None:
    context = read_measurements(path).context
    json.dumps(discover(load_model("darcy")[0], context).to_json(), allow_nan=False)


def _new_inputs(path: Path) -> None:
    """For a kernel of two inputs: they predict, and those without f can be measured next."""
    y = grids.from_points(np.arange(9.0)).with_components(2)
    kernel = Kernel(torch.ones(1, y.size, dtype=torch.float64), y, grids.point())
    inputs = read_inputs(path, kernel)
    inputs.laid_out(kernel.apply(inputs.U))
    candidates = read_candidates(path, kernel)
    assert [candidates.places.name(i) for i in range(len(candidates.places))]


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
    "dated": _measurements("dated.npz", lambda path, entries: np.savez(path, **entries), dated),
    "rows": _measurements("rows.npz", lambda path, entries: np.savez(path, **entries), rows),
    "csv": Kind(_table, _discover, _odd_table),
    "inputs": Kind(_unmeasured, _new_inputs, lambda path, random: np.savez(path, **_odd_entries(unmeasured(), random))),
    "context": Kind(_context_file, _discover),
    "fields": _measurements("fields.npz", lambda path, entries: np.savez(path, **entries), fields),
    "discovery": Kind(_saved_discovery, _predict),
}
