"""Solved specimens, kept beside an unfinished data set. Each says of which plan it is, and is checked for it."""

import hashlib
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from jaxtyping import Bool, Float

from kernelmap.core.errors import InputError
from kernelmap.core.files import atomic_path, is_file, reading
from kernelmap.core.progress import notice

Solved = tuple[Float[np.ndarray, "L 2 m"], Bool[np.ndarray, " L"]]


def part_path(parts: Path, index: int) -> Path:
    return parts / f"{index:05d}.npz"


def write_part(parts: Path, index: int, plan: str, u: np.ndarray, converged: np.ndarray) -> None:
    """`plan` is the hash of all that the results depend on."""
    with atomic_path(part_path(parts, index)) as temporary:
        np.savez(temporary, u=u, converged=converged, identity=_identity(plan, index, u, converged))


def read_part(parts: Path, index: int, plan: str, shape: tuple[int, int, int]) -> Solved | None:
    """None where it is missing; with a notice, where it is damaged or of another plan."""
    path = part_path(parts, index)
    if not is_file(path):
        return None
    try:
        with reading(path, "solved specimen", "it is solved again"), np.load(path, allow_pickle=False) as part:
            # Sizes are known: a header that declares others is not followed.
            with ZipFile(path) as archive:
                size = sum(info.file_size for info in archive.infolist())
            if size > 4 * np.prod(shape) + shape[0] + 2**14:
                raise InputError(f"{path} is larger than a specimen of this plan; it is solved again.")
            u, converged, identity = part["u"], part["converged"], str(part["identity"])
            if (u.shape, converged.shape) != (shape, shape[:1]) or identity != _identity(plan, index, u, converged):
                raise InputError(f"{path} belongs to another plan or is damaged; it is solved again.")
            return u, converged
    except InputError as error:
        notice(str(error))
        return None


def _identity(plan: str, index: int, u: np.ndarray, converged: np.ndarray) -> str:
    """SHA-256 of plan, place and numbers."""
    digest = hashlib.sha256(f"{plan} {index} {u.dtype} {converged.dtype}".encode())
    digest.update(np.ascontiguousarray(u).tobytes())
    digest.update(np.ascontiguousarray(converged).tobytes())
    return digest.hexdigest()
