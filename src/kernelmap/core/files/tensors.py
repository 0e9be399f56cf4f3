"""Tensors in safetensors files, with a checksum of all that is in them."""

import hashlib
import json
from pathlib import Path

import safetensors
from safetensors.torch import save_file
from torch import Tensor, uint8

from kernelmap.core.errors import InputError
from kernelmap.core.files.limits import require_memory
from kernelmap.core.files.reading import existing_file, reading
from kernelmap.core.files.writing import atomic_path

CHECKSUM = "sha256"
REMEDY = "train or import the model again"


def write_tensors(path: Path | str, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    described = {**(metadata or {}), CHECKSUM: _checksum(whole, metadata or {})}
    room = sum(tensor.nbytes + 512 for tensor in whole.values()) + sum(map(len, described.values())) + 4096
    with atomic_path(path, room=room) as temporary:
        save_file(whole, temporary, described)
        _sort_metadata(temporary)


def read_tensors(path: Path | str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file, and its metadata. Files of other programs have no checksum."""
    path = existing_file(path, "a safetensors file")
    with reading(path, "safetensors file", REMEDY):
        require_memory(path, path.stat().st_size, "these tensors")
        with safetensors.safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = dict(file.metadata() or {})
        written = metadata.pop(CHECKSUM, None)
        if written is not None and written != _checksum(tensors, metadata):
            raise InputError(f"{path} does not match its checksum: it was changed or damaged; {REMEDY}.")
    return tensors, metadata


def _sort_metadata(path: Path) -> None:
    """safetensors writes the metadata in any order; equal contents are to be equal files."""
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode().ljust(length)
        if len(text) == length:
            file.seek(8)
            file.write(text)


def _checksum(tensors: dict[str, Tensor], metadata: dict[str, str]) -> str:
    """SHA-256 of names, types, shapes, values and metadata."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(uint8).numpy().tobytes() if tensor.numel() else b"")
    for key, value in sorted(metadata.items()):
        digest.update(f"{key}\0{value}\0".encode())
    return digest.hexdigest()
