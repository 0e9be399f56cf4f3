"""A user's files of every format, small, and the contexts in them."""

from pathlib import Path

import h5py
import numpy as np
import torch
from scipy.io import savemat

from examples import square_context
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.operators import radial_tokens

SUFFIX = {"npz": ".npz", "hdf5": ".h5", "mat": ".mat", "mat73": ".mat"}
FORMATS = list(SUFFIX)


def write(folder: Path, format: str, **entries) -> Path:
    path = folder / f"mine{SUFFIX[format]}"
    if format == "npz":
        np.savez(path, **entries)
    elif format == "hdf5":
        with h5py.File(path, "w") as file:
            for name, value in entries.items():
                file[name] = value
    elif format == "mat":
        savemat(path, entries)
    else:
        write_mat73(path, entries)
    return path


def write_mat73(path: Path, entries: dict) -> None:
    """As MATLAB does: a header of 128 bytes, then HDF5 with at least two dimensions, columns first, text as codes."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in entries.items():
            text = isinstance(value, str)
            array = np.atleast_2d(np.array([ord(c) for c in value], dtype=np.uint16) if text else np.asarray(value))
            file[name] = array.T
            file[name].attrs["MATLAB_class"] = np.bytes_("char" if text else "double")
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


def mesh(**changes) -> dict:
    """Two inputs and responses on a mesh of 61 points with step 0.1, radius 2; an entry changed to None is left out."""
    x = np.linspace(-3, 3, 61)
    u = np.stack([np.exp(-((x - 0.2) ** 2)), np.sin(3 * x + 1)])
    f = np.random.default_rng(0).normal(size=(2, 61))
    return {k: v for k, v in ({"x": x, "u": u, "f": f, "radius": 2.0} | changes).items() if v is not None}


def tokens(**changes) -> dict:
    """Seven pairs on five radii."""
    rng = np.random.default_rng(1)
    entries = {"U": rng.normal(size=(5, 7)), "F": rng.normal(size=7), "r": 0.5 * np.arange(1, 6)}
    return {k: v for k, v in (entries | changes).items() if v is not None}


def square(**changes) -> dict:
    """Six pairs of fields on nine points of a square."""
    context = square_context(n=3, batch=())
    entries = {
        "U": context.U,
        "F": context.F,
        "y": context.y.points,
        "weights": context.y.weights,
        "x": context.x.points,
    }
    return {k: np.asarray(v) for k, v in (entries | changes).items() if v is not None}


def assert_same(found: Context, expected: Context) -> None:
    assert found.U.dtype == found.F.dtype == torch.float64
    for ours, theirs in (
        (found.U, expected.U),
        (found.F, expected.F),
        (found.y.points, expected.y.points),
        (found.y.weights, expected.y.weights),
        (found.x.points, expected.x.points),
        (found.x.weights, expected.x.weights),
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-13, atol=1e-15)


def direct(entries: dict) -> Context:
    """The context of `mesh` by hand: of 61 points, the 21 in the middle have u within 20 steps."""
    U = radial_tokens(torch.from_numpy(entries["u"]), 20).flatten(0, 1).T
    F = torch.from_numpy(entries["f"][:, 20:41].reshape(1, -1))
    return Context(U, F, grids.radii(0.1, 20), grids.point())
