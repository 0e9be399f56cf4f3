"""HDF5, NPZ and MAT files: which of them a file is, and the arrays in it."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from scipy.io import loadmat

from kernelmap.errors import InputError
from kernelmap.reading.entries import Entries

SUFFIXES = {".h5": "HDF5", ".hdf5": "HDF5", ".npz": "NPZ", ".mat": "MAT"}


def file_format(path: Path) -> str:
    """By the first bytes, which the suffix must not contradict."""
    try:
        with path.open("rb") as file:
            head = file.read(128)
    except OSError as error:
        raise InputError(f"the file cannot be read ({error.strerror}); change its permissions or copy it.") from error
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


def read_entries(path: Path, kind: str, known: set[str]) -> Entries:
    """The names at the top of the file, with their arrays where the name is known.

    A file that kernelmap wrote has one entry, which says so: `a kernelmap context file`.
    """
    try:
        if kind == "NPZ":
            with np.load(path, allow_pickle=False) as archive:
                return {name: archive[name] if name in known else None for name in archive.files}
        if kind == "MAT v5":
            return {name: value for name, value in loadmat(path).items() if not name.startswith("__")}
        with h5py.File(path, "r") as file:
            if "kernelmap" in file.attrs:
                return {f"a kernelmap {file.attrs['kernelmap']} file": None}
            return {name: _dataset(node) if name in known else None for name, node in file.items()}
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
