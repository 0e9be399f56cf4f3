"""`read_measurements`: a user's own HDF5, NPZ or MAT file as the context of one system (docs/your-data.md)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from scipy.io import loadmat
from torch import Tensor

from kernelmap import grids
from kernelmap.context import Context
from kernelmap.errors import InputError
from kernelmap.files import existing_file
from kernelmap.grids import Grid
from kernelmap.problems.radial.tokens import radial_tokens

LAYOUTS = {
    "mesh": ("x", "u", "f"),
    "tokens on radii": ("U", "F", "r"),
    "tokens on points": ("U", "F", "y", "weights"),
}
KNOWN = {"radius", "outside"}.union(*LAYOUTS.values())
SUFFIXES = {".h5": "HDF5", ".hdf5": "HDF5", ".npz": "NPZ", ".mat": "MAT"}
DEFAULT_RADIUS = 11.0
MOST_TOKENS = 2**28  # 2 GiB

Entries = dict[str, Any]
Dropped = dict[str, int]


@dataclass(frozen=True)
class Measurements:
    """The pairs of one system in float64, and in plain words what was found in the file."""

    context: Context
    found: dict[str, str]


def read_measurements(path: Path | str) -> Measurements:
    """Format by the file's first bytes, layout by the names of its entries."""
    path = existing_file(path, "a file of measurements (HDF5, NPZ or MAT)")
    try:
        kind = _format(path)
        entries = _entries(path, kind)
        layout = _layout(entries)
        U, F, y, x, dropped = _pairs(path, entries, layout)
        if U.shape[-1] < 2:
            raise InputError(f"expected at least 2 pairs, got {U.shape[-1]} (dropped: {_listed(dropped)}).")
        context = Context(U, F, y, x)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    arrays = {"U": U, "F": F} if layout == "context" else {name: entries[name] for name in entries if name in KNOWN}
    low, high = (", ".join(f"{v:.6g}" for v in corner) for corner in (y.points.amin(0), y.points.amax(0)))
    found = {
        "format": kind,
        "layout": layout,
        "entries": ", ".join(f"{name} {tuple(np.shape(array)) or 'scalar'}" for name, array in arrays.items()),
        "radii" if x.is_point and y.dim == 1 else "points": f"{len(y.points)} from {low} to {high}",
        "outputs": str(x.size),
        "pairs": str(context.d),
        "dropped": _listed(dropped),
    }
    return Measurements(context, found)


def _listed(dropped: Dropped) -> str:
    return "; ".join(f"{count} where {why}" for why, count in dropped.items() if count) or "none"


def _format(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(128)
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        kind = "HDF5"
    elif head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        kind = "NPZ"
    elif head[126:128] in (b"IM", b"MI"):
        kind = "MAT v7.3" if 2 in head[124:126] else "MAT v5"
    else:
        got = f"a file that begins with {head[:8]!r}" if head else "an empty file"
        raise InputError(
            f"expected HDF5, NPZ or MAT (v5 or later), got {got}. It may be cut short or of another kind; "
            "write it again."
        )
    promised = SUFFIXES.get(path.suffix.lower(), kind)
    if not kind.startswith(promised):
        raise InputError(f"expected {promised} by its name, got {kind} by its content; rename the file.")
    return kind


def _entries(path: Path, kind: str) -> Entries:
    """The names at the top of the file, with their arrays where a layout knows the name."""
    try:
        if kind == "NPZ":
            with np.load(path, allow_pickle=False) as archive:
                return {name: archive[name] if name in KNOWN else None for name in archive.files}
        if kind == "MAT v5":
            return {name: value for name, value in loadmat(path).items() if not name.startswith("__")}
        with h5py.File(path, "r") as file:
            if "kernelmap" in file.attrs:
                return {f"a kernelmap {file.attrs['kernelmap']} file": None}
            return {name: _dataset(node) if name in KNOWN else None for name, node in file.items()}
    except Exception as error:  # on damaged files the readers raise anything from TypeError to zlib.error
        raise InputError(
            f"expected arrays in {kind}, got a file that cannot be read ({error}). It may be cut short or hold "
            "objects; write it again."
        ) from error


def _dataset(node: Any) -> np.ndarray | None:
    if not isinstance(node, h5py.Dataset):
        return None
    values = np.asarray(node[()])
    if node.attrs.get("MATLAB_class") == b"char":
        return np.asarray("".join(map(chr, values.ravel())))
    return values.T if "MATLAB_class" in node.attrs else values  # MATLAB writes columns first


def _layout(entries: Entries) -> str:
    if "a kernelmap context file" in entries:
        return "context"
    fitting = [layout for layout, names in LAYOUTS.items() if set(names) <= set(entries)]
    if len(fitting) == 1:
        return fitting[0]
    known = "; ".join(f"{layout}: {', '.join(names)}" for layout, names in LAYOUTS.items())
    raise InputError(
        f"expected the entries of one layout ({known}), got {', '.join(sorted(entries)) or 'no entries'}. "
        f"{'Keep one layout.' if fitting else 'Rename or add entries; capitals matter.'}"
    )


def _pairs(path: Path, entries: Entries, layout: str) -> tuple[Tensor, Tensor, Grid, Grid, Dropped]:
    if layout == "context":
        return *_saved_pairs(path), {}
    if layout == "mesh":
        return _mesh_pairs(entries)
    return *_token_pairs(entries), {}


def _saved_pairs(path: Path) -> tuple[Tensor, Tensor, Grid, Grid]:
    context = Context.load(path)
    if context.batch_shape.numel() != 1:
        raise InputError(f"expected one system, got a batch of shape {tuple(context.batch_shape)}; save one by one.")
    U, F = (values.reshape(values.shape[-2:]).double() for values in (context.U, context.F))
    return U, F, context.y, context.x


def _mesh_pairs(entries: Entries) -> tuple[Tensor, Tensor, Grid, Grid, Dropped]:
    """A pair is a mesh point where f was measured and u is known within the radius."""
    x = _vector(entries, "x")
    dx = _mesh_step(x)
    u, f = (_functions(entries, name, len(x)) for name in ("u", "f"))
    if len(u) != len(f):
        raise InputError(f"u holds {len(u)} functions but f holds {len(f)}; every u needs its f.")
    _require_finite("u", u)
    if np.isinf(f).any():
        raise InputError(f"f holds {np.isinf(f).sum()} infinite value(s); write NaN where it was not measured.")
    zero_outside = _zero_outside(entries)
    count = _count_radii(entries, x, dx, zero_outside)
    measured, reached = ~np.isnan(f), np.ones(f.shape, dtype=bool)
    if not zero_outside:
        reached[:, :count] = reached[:, -count:] = False
    used = measured & reached
    pairs = int(used.sum())
    if (pairs + len(u)) * count > MOST_TOKENS:
        raise InputError(
            f"{pairs} pairs of {count} radii do not fit into memory. Write NaN into f at some points, or take a "
            "smaller radius or a coarser mesh; radius and x must have the same unit."
        )
    windows = torch.from_numpy(np.pad(u, ((0, 0), (count, count)))).unfold(-1, 2 * count + 1, 1)
    tokens = radial_tokens(windows[torch.from_numpy(used)], count)[:, 0]
    telling = tokens.any(dim=1)
    dropped = {
        "f is NaN": int((~measured).sum()),
        "the mesh ends within the radius": int((measured & ~reached).sum()),
        "all tokens are zero": int((~telling).sum()),
    }
    U, F = tokens[telling].T, torch.from_numpy(f[used])[telling][None]
    return U, F, grids.radii(dx, count), grids.point(), dropped


def _mesh_step(x: np.ndarray) -> float:
    _require_finite("x", x)
    if len(x) < 3 or not (np.diff(x) > 0).all():
        raise InputError("x must hold at least 3 increasing mesh points; sort x, u and f by x.")
    if not _is_uniform(x, x[0]):
        steps = np.diff(x)
        raise InputError(
            f"x must be a uniform mesh, got steps from {steps.min():.6g} to {steps.max():.6g}. Interpolate u and f to "
            "a uniform mesh, or write tokens."
        )
    return float(x[-1] - x[0]) / (len(x) - 1)


def _is_uniform(points: np.ndarray, first: float) -> bool:
    """To one per cent of a step, which single precision and printed decimals keep."""
    ideal, step = np.linspace(first, points[-1], len(points), retstep=True)
    return bool((np.abs(points - ideal) <= 0.01 * step).all())


def _functions(entries: Entries, name: str, mesh_points: int) -> np.ndarray:
    values = _numbers(entries, name)
    rows = values.reshape(1, -1) if values.size == mesh_points else values
    if rows.ndim != 2 or rows.shape[1] != mesh_points:
        swapped = values.ndim == 2 and len(values) == mesh_points
        raise InputError(
            f"{name} must have shape (J,) or (n, J) with the J = {mesh_points} points of x, got {values.shape}."
            f"{' Its axes seem swapped: mesh points go last.' if swapped else ''}"
        )
    return rows


def _zero_outside(entries: Entries) -> bool:
    if "outside" not in entries:
        return False
    word = np.asarray(entries["outside"])
    if word.size != 1 or word.item() not in ("zero", b"zero"):
        raise InputError(f'outside must be the text "zero" or be left out, got {word}.')
    return True


def _count_radii(entries: Entries, x: np.ndarray, dx: float, zero_outside: bool) -> int:
    given = _numbers(entries, "radius") if "radius" in entries else np.asarray(DEFAULT_RADIUS)
    if given.size != 1 or not dx / 2 < given.item() < np.inf:
        raise InputError(
            f"radius must be one number above the step {dx:.6g} of the mesh, in the unit of x, got {given}."
        )
    radius = given.item()
    count = round(radius / dx)
    if not zero_outside and len(x) <= 2 * count:
        raise InputError(
            f"the mesh is {x[-1] - x[0]:.6g} long, but u must be known within the radius {radius:g} on both sides of a "
            f'point: measure u on a mesh longer than {2 * count * dx:.6g}, set outside = "zero" if u is zero beyond '
            "the mesh, or set a smaller radius if the kernel has one."
        )
    return count


def _token_pairs(entries: Entries) -> tuple[Tensor, Tensor, Grid, Grid]:
    U, F = _numbers(entries, "U"), _numbers(entries, "F")
    if U.ndim != 2:
        raise InputError(f"U must have shape (N, d), got {U.shape}.")
    y = _radial_grid(_vector(entries, "r")) if "r" in entries else _weighted_grid(entries, U)
    if "x" in entries:
        F = np.atleast_2d(F)
        x = _output_grid(_points(entries, "x", "F", F), y)
    else:
        F = _vector(entries, "F", "; for several outputs give x, (M, dim)")[None]
        x = grids.point()
    return torch.from_numpy(U), torch.from_numpy(F), y, x


def _radial_grid(r: np.ndarray) -> Grid:
    _require_finite("r", r)
    if not (np.diff(r, prepend=0) > 0).all():
        raise InputError(f"r must begin above 0 and increase, got {r[0]:.6g} to {r[-1]:.6g}; sort r and the rows of U.")
    dx = float(r[-1]) / len(r)
    return grids.radii(dx, len(r)) if _is_uniform(r, dx) else grids.from_points(r)


def _weighted_grid(entries: Entries, U: np.ndarray) -> Grid:
    points, weights = _points(entries, "y", "U", U), _vector(entries, "weights")
    if len(weights) != len(points):
        raise InputError(f"y holds {len(points)} points but weights holds {len(weights)} values; give one for each.")
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise InputError("weights must be positive: the share of the domain that each point of y stands for.")
    return Grid(torch.from_numpy(points), torch.from_numpy(weights))


def _output_grid(points: np.ndarray, y: Grid) -> Grid:
    """With the weights of y where the points are those of y, otherwise with equal weights."""
    p = torch.from_numpy(points)
    same = p.shape == y.points.shape and torch.allclose(p, y.points)
    return Grid(p, y.weights if same else torch.full((len(p),), 1 / len(p), dtype=torch.float64))


def _points(entries: Entries, name: str, fields: str, rows: np.ndarray) -> np.ndarray:
    """Points (n, dim), one for each row of the fields U or F."""
    values = _numbers(entries, name)
    points = values.reshape(-1, 1) if values.size == len(rows) else values
    if points.ndim != 2 or len(points) != len(rows):
        swapped = ""
        if values.shape[:1] == rows.shape[1:]:
            swapped = f" The axes of {fields} seem swapped: pairs go last."
        elif values.shape[1:] == rows.shape[:1]:
            swapped = f" The axes of {name} seem swapped: points go first."
        raise InputError(
            f"{name} must have shape ({len(rows)}, dim), a point for each row of {fields}, got {values.shape}.{swapped}"
        )
    _require_finite(name, points)
    return points


def _vector(entries: Entries, name: str, advice: str = "") -> np.ndarray:
    """MAT files hold vectors as single rows or columns."""
    values = _numbers(entries, name)
    if values.size == 0 or values.size != max(values.shape, default=0):
        raise InputError(f"{name} must be a vector, got shape {values.shape}{advice}.")
    return values.ravel()


def _numbers(entries: Entries, name: str) -> np.ndarray:
    values = entries[name]
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu":
        kind = values.dtype if isinstance(values, np.ndarray) else type(values).__name__
        raise InputError(f"{name} must be an array of real numbers, got {kind}; write it in float64.")
    return values.astype(np.float64, order="C")


def _require_finite(name: str, values: np.ndarray) -> None:
    bad = np.size(values) - np.isfinite(values).sum()
    if bad:
        raise InputError(f"{name} holds {bad} value(s) that are NaN or infinite; measure them or cut them out.")
