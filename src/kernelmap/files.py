"""Reading and writing files: whole or not at all, and with errors that say what is wrong."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkstemp
from typing import Any

import h5py
import numpy as np
import safetensors
import torch
from safetensors.torch import save_file
from torch import Tensor

from kernelmap.errors import InputError


@contextmanager
def atomic_path(path: Path | str, room: int = 0) -> Iterator[Path]:
    """A temporary path beside `path`, renamed to it on success and removed on failure.

    A process killed half way leaves the old file as it was. `room` is the number of bytes that must be free on the
    disk before anything is written: HDF5 may crash when the disk becomes full under it.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"cannot write the file {path}: it is a directory. Choose another name.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}. Choose another place.") from error
    os.close(handle)
    temporary = Path(name)
    try:
        if room and hasattr(os, "posix_fallocate"):
            with temporary.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, room)
                file.truncate(0)
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(f"{path} could not be written ({error.strerror or error}); nothing was changed.") from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_json(path: Path | str, value: Any) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2) + "\n")


def read_json(path: Path | str) -> Any:
    path = existing_file(path, "a JSON file")
    try:
        return json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid JSON ({error}). Was it cut short?") from error


def write_tensors(path: Path | str, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    with atomic_path(path) as temporary:
        save_file(
            {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
            temporary,
            metadata,
        )


def read_tensors(path: Path | str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file, and its metadata."""
    path = existing_file(path, "a safetensors file")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
    except safetensors.SafetensorError as error:
        raise InputError(
            f"{path} is not a readable safetensors file ({error}). It may be cut short or of another kind; "
            "train or import the model again."
        ) from error


@contextmanager
def open_hdf5(path: Path | str) -> Iterator[h5py.File]:
    """An HDF5 file open for reading; a missing data set inside is an `InputError` too."""
    path = existing_file(path, "an HDF5 file")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        size = path.stat().st_size
        raise InputError(
            f"{path} ({size} bytes) is not a readable HDF5 file. It may be empty, cut short or of another kind; "
            "write it again."
        ) from error
    with file:
        try:
            yield file
        except OSError as error:
            raise InputError(f"{path} cannot be read to its end ({error}); it may be damaged.") from error
        except KeyError as error:
            raise InputError(
                f"{path} lacks an entry that was expected ({error.args[0]}); it holds {sorted(file)} "
                f"with attributes {sorted(file.attrs)}."
            ) from error


def read_array(group: h5py.Group, name: str) -> Tensor:
    data = group[name]
    if not isinstance(data, h5py.Dataset):
        raise InputError(f"{group.file.filename}: {name} should be a data set.")
    if data.dtype.kind not in "fiu":
        raise InputError(f"{group.file.filename}: {name} should hold numbers, got {data.dtype}.")
    return torch.from_numpy(np.asarray(data[()]))


def read_attribute(group: h5py.Group, name: str) -> Any:
    return group.attrs[name]


def existing_file(path: Path | str, kind: str) -> Path:
    path = Path(path)
    if not path.is_file():
        raise InputError(f"expected {kind} at {path}, but there is {'a directory' if path.is_dir() else 'nothing'}.")
    return path
