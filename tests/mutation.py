"""Mutants of files, and what reading one ends in: a sentence or a value."""

import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from kernelmap.core.errors import InputError


@dataclass(frozen=True)
class Kind:
    """A kind of file: how to write a good one into a directory, and how to read it (raising InputError if it must)."""

    write: Callable[[Path], Path]
    read: Callable[[Path], None]
    odd: Callable[[Path, Random], None] | None = None


def mutate_bytes(path: Path, random: Random) -> None:
    """Bytes flipped, cut, doubled, lost, or set to extremes."""
    data = bytearray(path.read_bytes())
    for _ in range(random.choice([1, 1, 2, 8])):
        if not data:
            break
        place, length = random.randrange(len(data)), random.choice([1, 2, 4, 8, 64])
        place = random.choice([place, min(place, random.randrange(1, 600))])  # headers are short
        action = random.randrange(6)
        if action == 0:
            data[place % len(data)] ^= 1 << random.randrange(8)
        elif action == 1:
            data[place : place + length] = bytes([random.choice([0, 255, 127, 128])]) * length
        elif action == 2:
            del data[place:]
        elif action == 3:
            del data[place : place + length]
        elif action == 4:
            data[place:place] = data[place : place + length]
        else:
            data[place : place + length] = random.randbytes(length)
    path.write_bytes(data)


def mutant(kind: Kind, directory: Path, seed: int) -> Path:
    """A damaged or odd file; the same for the same seed."""
    random = Random(seed)
    path = kind.write(directory)
    if kind.odd is not None and random.random() < 0.5:
        kind.odd(path, random)
    else:
        mutate_bytes(path, random)
    return path


def outcome(kind: Kind, path: Path) -> str:
    """accepted or refused; anything else is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            kind.read(path)
        except InputError:
            return "refused"
    return "accepted"


_made: dict[str, Path] = {}


def copy_of(directory: Path, name: str, make: Callable[[Path], None]) -> Path:
    """Made once in a process, copied for every mutant."""
    if name not in _made:
        _made[name] = Path(tempfile.mkdtemp(prefix=f"kernelmap-{name}-"))
        make(_made[name])
    copy = directory / name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(_made[name], copy)
    return copy
