"""MAT files of version 5: only the entries that are needed are unpacked, and none before its size is known."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import BinaryIO

from scipy.io import loadmat, whosmat

from kernelmap.core.errors import InputError
from kernelmap.core.files.limits import reading_limit, require_memory
from kernelmap.io.entries import Entries, require_distinct

HEADER, TAG = 128, 8
MATRIX, COMPRESSED = 14, 15
CHUNK = 2**16
NUMERIC = {"double", "single", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}


@dataclass(frozen=True)
class Element:
    """A variable in the file: where its bytes are, and whether they are compressed."""

    start: int
    size: int
    compressed: bool


def read_mat(path: Path, known: set[str]) -> Entries:
    found = whosmat(path)
    require_distinct([name for name, _, _ in found])
    wanted = {name: (shape, kind) for name, shape, kind in found if name in known}
    for name, (_, kind) in wanted.items():
        if kind not in NUMERIC | {"char"}:
            raise InputError(f"{name} must be a full array of real numbers, got a MATLAB {kind}; write it in double.")
    require_memory(path, 8.0 * sum(prod(shape) for shape, _ in wanted.values()), ", ".join(wanted) or "it")
    _check_inflated(path, [name for name, _, _ in found], known)
    arrays = loadmat(path, variable_names=list(wanted)) if wanted else {}
    return {name: arrays.get(name) for name, _, _ in found}


def _check_inflated(path: Path, names: list[str], known: set[str]) -> None:
    """The compressed bytes of what is read, unpacked and counted: they may be more than their header declares."""
    limit = reading_limit(path)
    with path.open("rb") as file:
        for name, element in zip(names, _elements(file), strict=False):
            if name in known and element.compressed:
                require_memory(path, _inflated(file, element, limit), name)


def _elements(file: BinaryIO) -> Iterator[Element]:
    """In the order of the file, as `whosmat` lists them."""
    file.seek(HEADER - 2)
    order = "<" if file.read(2) == b"IM" else ">"
    place = HEADER
    while True:
        file.seek(place)
        tag = file.read(TAG)
        if len(tag) < TAG:
            return
        kind, size = struct.unpack(f"{order}II", tag)
        if kind in (MATRIX, COMPRESSED):
            yield Element(place + TAG, size, kind == COMPRESSED)
        place += TAG + size


def _inflated(file: BinaryIO, element: Element, limit: float) -> int:
    """Bytes after unpacking; counting stops above the limit."""
    unpacker, left, count = zlib.decompressobj(), element.size, 0
    file.seek(element.start)
    while left > 0 and count <= limit and not unpacker.eof:
        chunk = file.read(min(CHUNK, left))
        if not chunk:
            break
        left -= len(chunk)
        while chunk and count <= limit:
            count += len(unpacker.decompress(chunk, CHUNK))
            chunk = unpacker.unconsumed_tail
    return count
