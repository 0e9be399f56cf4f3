"""How much of a file may be read into memory, decided before anything is read."""

import os
from pathlib import Path

from kernelmap.core.errors import InputError

VARIABLE = "KERNELMAP_MAX_MEMORY"
"""In gigabytes; set by `--max-memory`, and seen by processes that a command starts."""

FREE_FRACTION = 0.25
"""Of the free memory: what is read is copied, scaled and multiplied afterwards."""

SMALL, INFLATION = 2**26, 20
"""Without a word of the user, a file may hold 64 MB, or twenty times its size on disk."""

MOST_SEED = 2**63


def max_memory() -> float | None:
    """What the user allows, in bytes."""
    given = os.environ.get(VARIABLE)
    return None if not given else parse_gigabytes(given)


def parse_gigabytes(text: str) -> float:
    try:
        gigabytes = float(text)
    except ValueError:
        gigabytes = float("nan")
    if not 0 < gigabytes < 2**30:
        raise InputError(f"--max-memory is a number of gigabytes above 0, such as 2 or 0.5, got {text!r}.")
    return gigabytes * 2**30


def reading_limit(path: Path | str) -> float:
    """Bytes that the arrays of a file may take."""
    given = max_memory()
    if given is not None:
        return given
    return min(FREE_FRACTION * free_memory(), max(SMALL, INFLATION * Path(path).stat().st_size))


def require_memory(path: Path | str, wanted: float, what: str) -> None:
    """Refuse arrays that declare more than the limit."""
    if wanted > (limit := reading_limit(path)):
        raise InputError(
            f"{what} would take {_megabytes(wanted)}, and {_megabytes(limit)} are allowed for a file of "
            f"{_megabytes(Path(path).stat().st_size)}. If it is right, give --max-memory {wanted / 2**30:.2g} or more, "
            "in gigabytes; else write the file again."
        )


def free_memory() -> float:
    """Bytes that this machine, or this container, has left."""
    found = [_meminfo()]
    for most, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            found.append(int(Path(most).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):
            continue
    return max(0.0, min(found))


def check_seed(seed: int, name: str = "seed") -> None:
    if not 0 <= seed < MOST_SEED:
        raise InputError(f"{name} must be a whole number from 0 to 2^63 - 1, got {seed}.")


def check_count(count: int, name: str) -> None:
    """Of threads or processes on this machine."""
    most = max(64, 4 * (os.cpu_count() or 1))
    if not 1 <= count <= most:
        raise InputError(f"{name} must be at least 1 and at most {most} on this machine, got {count}.")


def _meminfo() -> float:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * float(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return 2.0**33


def _megabytes(size: float) -> str:
    return f"{size / 2**20:.3g} MB"
