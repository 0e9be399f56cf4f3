"""HDF5 files: data of the file itself, within the limits of memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.core.files.limits import require_memory
from kernelmap.core.files.reading import existing_file, reading

REAL = "fiu"
LARGEST_ITEM = 8


@contextmanager
def open_hdf5(path: Path | str) -> Iterator[h5py.File]:
    """An HDF5 file open for reading; whatever is wrong inside is an `InputError` too."""
    path = existing_file(path, "an HDF5 file")
    with reading(path, "HDF5 file", "write it again"), h5py.File(path, "r") as file:
        try:
            yield file
        except KeyError as error:
            raise InputError(
                f"{path} lacks an entry that was expected ({error.args[0] if error.args else error}); it holds "
                f"{sorted(map(str, file))} with attributes {sorted(map(str, file.attrs))}."
            ) from error


def entry(group: h5py.Group, name: str) -> h5py.Group | h5py.Dataset:
    """What lies in the file itself.

    A link may lead to another of the user's files, whose hash is not recorded; a virtual data set whose source is
    missing reads as zeros, and one that refers to itself ends the process.
    """
    link = group.get(name, getlink=True)
    if link is not None and not isinstance(link, h5py.HardLink):
        raise InputError(f"{name} is a link, which may lead to other files; copy the data into this file.")
    found = group[name]
    if isinstance(found, h5py.Datatype):
        raise InputError(f"{name} is a type, not data; write the data under this name.")
    if isinstance(found, h5py.Dataset):
        layout = found.id.get_create_plist()
        if layout.get_layout() == h5py.h5d.VIRTUAL:
            raise InputError(f"{name} is a virtual data set, made of other ones; copy the data into this file.")
        if layout.get_external_count():
            raise InputError(f"{name} lies in another file (external storage); copy the data into this file.")
    return found


def read_values(group: h5py.Group, name: str) -> np.ndarray:
    """The numbers of a data set, in the byte order of this machine and at most double precision."""
    data = entry(group, name)
    if not isinstance(data, h5py.Dataset):
        raise InputError(f"{group.file.filename}: {name} should be a data set.")
    if data.dtype.kind not in REAL:
        raise InputError(f"{group.file.filename}: {name} should hold numbers, got {data.dtype}.")
    require_memory(group.file.filename, LARGEST_ITEM * float(data.size or 0), f"{name}, of shape {data.shape},")
    if data.shape is None:
        raise InputError(f"{group.file.filename}: {name} is empty; write it again.")
    _check_chunks(data, name)
    values = np.asarray(data[()])
    plain = values.dtype.newbyteorder("=")
    return values.astype(np.float64 if plain.itemsize > LARGEST_ITEM else plain, copy=False)


def _check_chunks(data: h5py.Dataset, name: str) -> None:
    """A chunk is unpacked whole, however little of it is used; one that was never written reads as zeros."""
    if data.chunks is not None:
        require_memory(data.file.filename, data.dtype.itemsize * float(prod(data.chunks)), f"a chunk of {name}")
        missing = prod(-(-n // k) for n, k in zip(data.shape, data.chunks, strict=True)) - data.id.get_num_chunks()
    else:
        missing = int(bool(data.size) and data.id.get_storage_size() == 0)
    if missing > 0 and not np.isnan(data.fillvalue):
        raise InputError(
            f"{data.file.filename}: {name} was not written to its end, and would read as zeros; write it again."
        )


def read_array(group: h5py.Group, name: str) -> Tensor:
    return torch.from_numpy(read_values(group, name))


def read_attribute(group: h5py.Group, name: str) -> Any:
    return group.attrs[name]


def read_text(group: h5py.Group, name: str) -> str:
    """A text among the attributes."""
    text = group.attrs[name]
    if not isinstance(text, str):
        raise InputError(f"{group.file.filename}: the attribute {name} should be a text, got {type(text).__name__}.")
    return text
