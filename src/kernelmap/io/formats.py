"""HDF5, NPZ, MAT and CSV files: which of them a file is, and the arrays in it."""

from pathlib import Path

import h5py
import numpy as np

from kernelmap.core.errors import InputError
from kernelmap.core.files.hdf5 import entry, read_text, read_values
from kernelmap.core.files.limits import require_memory
from kernelmap.core.files.reading import reading
from kernelmap.io.entries import Entries
from kernelmap.io.mat import read_mat
from kernelmap.io.npz import read_npz
from kernelmap.io.series.table import read_table

SUFFIXES = {".h5": "HDF5", ".hdf5": "HDF5", ".npz": "NPZ", ".mat": "MAT", ".csv": "CSV"}
LONGEST_TEXT = 1000


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
    elif path.suffix.lower() == ".csv" and head and b"\0" not in head:
        kind = "CSV"
    else:
        got = f"a file that begins with {head[:8]!r}" if head else "an empty file"
        raise InputError(
            f"expected HDF5, NPZ or MAT (v5 or later), or a table named .csv, got {got}. It may be cut short or of "
            "another kind; write it again."
        )
    promised = SUFFIXES.get(path.suffix.lower(), kind)
    if not kind.startswith(promised):
        raise InputError(f"expected {promised} by its name, got {kind} by its content; rename the file.")
    return kind


def read_entries(path: Path, kind: str, known: set[str]) -> Entries:
    """The names at the top of the file, with their arrays where the name is known; nothing else is read.

    A file that kernelmap wrote has one entry, which says so: `a kernelmap context file`.
    """
    with reading(path, f"{kind} file of arrays", "write it again"):
        if kind == "NPZ":
            return read_npz(path, known)
        if kind == "MAT v5":
            return read_mat(path, known)
        if kind == "CSV":
            return read_table(path)
        with h5py.File(path, "r") as file:
            if "kernelmap" in file.attrs:
                return {f"a kernelmap {read_text(file, 'kernelmap')} file": None}
            return {str(name): _values(file, name) if name in known else None for name in file}


def _values(file: h5py.File, name: str) -> np.ndarray | None:
    node = entry(file, name)
    if not isinstance(node, h5py.Dataset):
        return None
    if node.dtype.kind in "OSU" and node.size == 1:
        return _text(node)
    if h5py.check_string_dtype(node.dtype) is not None and node.ndim == 1:
        return _texts(file, node)
    if node.attrs.get("MATLAB_class") == b"char":
        if (node.size or 0) > LONGEST_TEXT:
            raise InputError(f"{name} is a text of {node.size} characters; expected a word.")
        return np.asarray("".join(map(chr, np.asarray(node[()]).ravel())))
    values = read_values(file, name)
    return values.T if "MATLAB_class" in node.attrs else values  # MATLAB writes columns first


def _text(node: h5py.Dataset) -> np.ndarray:
    value = node[()]
    text = value.item() if isinstance(value, np.ndarray) else value
    if not isinstance(text, (bytes, str)) or len(text) > LONGEST_TEXT:
        raise InputError(f"{node.name} should be a word or an array of numbers, got {node.dtype}.")
    return np.asarray(text)


def _texts(file: h5py.File, node: h5py.Dataset) -> np.ndarray:
    """A list of names."""
    require_memory(file.filename, LONGEST_TEXT * float(node.size or 0), f"{node.name}, of {node.size} texts,")
    return np.asarray(node[()]).astype(object)
