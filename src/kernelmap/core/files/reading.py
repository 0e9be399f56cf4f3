"""The one place where what can go wrong with files becomes an `InputError` that says what to do."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelmap.core.errors import InputError

CHUNK = 2**20


@contextmanager
def reading(path: Path | str, kind: str, remedy: str) -> Iterator[None]:
    """Whatever a reader raises on a damaged file, from TypeError to zlib.error, as one sentence.

    Inside, only the file is read and what it holds is put together: any failure is the file's.
    """
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{path} does not fit into memory. Cut it into smaller files, or free memory.") from error
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(f"{path} cannot be read ({error.strerror or error}); {remedy}, or copy it.") from error
        raise InputError(
            f"{path}{_size(path)} is not a readable {kind} ({type(error).__name__}: {_short(error)}). It may be cut "
            f"short, damaged or of another kind; {remedy}."
        ) from error


def existing_file(path: Path | str, kind: str) -> Path:
    path = Path(path)
    try:
        found = path.is_file(), path.is_dir()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"expected {kind} at {path}, but it cannot be looked at ({why}).") from error
    if not found[0]:
        there = "a directory" if found[1] else "a device, a pipe or a socket" if path.exists() else "nothing"
        raise InputError(f"expected {kind} at {path}, but there is {there}.")
    return path


def is_file(path: Path | str) -> bool:
    """Whether there is a file that this user may see."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def file_sha256(path: Path | str) -> str:
    """In chunks, for a file may be larger than the memory."""
    digest = hashlib.sha256()
    with reading(path, "file", "copy it again"), Path(path).open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _size(path: Path | str) -> str:
    try:
        return f" ({Path(path).stat().st_size} bytes)"
    except (OSError, ValueError):
        return ""


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:300]}..."
