"""NPZ files: what an array declares is compared with what is there, and with the memory, before it is read."""

from math import prod
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

from kernelmap.core.errors import InputError
from kernelmap.core.files.limits import require_memory
from kernelmap.io.entries import Entries, require_distinct

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_npz(path: Path, known: set[str]) -> Entries:
    with ZipFile(path) as archive:
        require_distinct([info.filename.removesuffix(".npy") for info in archive.infolist()])
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        wanted = [name for name in members if name in known]
        require_memory(path, sum(_doubles(archive, members[name]) for name in wanted), ", ".join(wanted) or "it")
        return {name: _read(archive, info) if name in known else None for name, info in members.items()}


def _doubles(archive: ZipFile, info: ZipInfo) -> int:
    """Bytes of an array in double precision, from its header, which must agree with the archive."""
    with archive.open(info) as file:
        version = npy.read_magic(file)
        if version not in HEADERS:
            raise InputError(f"{info.filename} is of version {version} of NPY; write it with numpy.savez.")
        shape, _, dtype = HEADERS[version](file)
        if dtype.hasobject:
            raise InputError(f"{info.filename} holds Python objects, which are not read; write numbers.")
        size = prod(shape)
        if size * dtype.itemsize != info.file_size - file.tell():
            raise InputError(
                f"{info.filename} declares {shape} values of {dtype}, but there are {info.file_size - file.tell()} "
                "bytes. It is cut short or damaged; write it again."
            )
    return size * max(8, dtype.itemsize)


def _read(archive: ZipFile, info: ZipInfo) -> np.ndarray:
    with archive.open(info) as file:
        return np.asarray(npy.read_array(file, allow_pickle=False))
