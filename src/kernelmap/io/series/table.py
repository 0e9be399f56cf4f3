"""CSV: a header, the time in the first column, one column `f`, perhaps one `f_std`, and the inputs in the others.

Lines `# radius = 365` before the header are the other entries.
"""

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from kernelmap.core.errors import InputError
from kernelmap.core.files.limits import require_memory
from kernelmap.io.entries import Entries, require_distinct

RESPONSES = "f", "f_std"
"""Names of the columns that are no inputs."""

BYTES_PER_CHARACTER = 16
"""Of a number while it is read; it takes two characters or more."""


def read_table(path: Path) -> Entries:
    require_memory(path, BYTES_PER_CHARACTER * path.stat().st_size, "it")
    with path.open(newline="", encoding="utf-8-sig") as file:
        said: list[tuple[str, np.ndarray]] = []
        lines = iter(file)
        for line in lines:
            if line.startswith("#"):
                said += _entry(line).items()
            elif line.strip():
                (header,) = csv.reader([line])
                columns = _columns([name.strip() for name in header], csv.reader(lines))
                # Names of columns are those of the inputs, unless the file says others.
                require_distinct([name for name, _ in said] + [name for name in columns if name != "u_name"])
                return {"operator": np.asarray("convolution")} | columns | dict(said)
    raise InputError("the table is empty; expected a header, such as time,rain,f, and a line for each time.")


def _entry(line: str) -> Entries:
    """`# name = value`; other lines are comments."""
    name, equals, value = (part.strip() for part in line.lstrip("#").partition("="))
    if not equals or not name.isidentifier() or name in ("t", "u", "f", "t_f"):
        return {}
    try:
        return {name: np.asarray(float(value))}
    except ValueError:
        return {name: np.asarray(value)}


def _columns(header: list[str], rows: Iterable[list[str]]) -> Entries:
    inputs = [i for i, name in enumerate(header) if i > 0 and name not in RESPONSES]
    if not inputs or len(set(header)) != len(header):
        raise InputError(
            "expected a header with the name of the time, f and the names of the inputs, all different and with "
            f"commas between them, got {','.join(header)[:200]!r}."
        )
    times: list[str] = []
    values: list[list[float]] = []
    for number, row in enumerate((row for row in rows if any(field.strip() for field in row)), 1):
        if len(row) != len(header):
            raise InputError(f"line {number} after the header has {len(row)} fields, the header {len(header)}.")
        times.append(row[0].strip())
        values.append([_number(field, header[i], number) for i, field in enumerate(row) if i > 0])
    table = np.array(values, dtype=np.float64).reshape(len(values), len(header) - 1).T
    entries: Entries = {"t": _times(times), "u": table[[i - 1 for i in inputs]]}
    entries |= {name: table[header.index(name, 1) - 1] for name in RESPONSES if name in header[1:]}
    return entries | {"u_name": np.asarray(", ".join(header[i] for i in inputs))}


def _times(texts: list[str]) -> np.ndarray:
    """Numbers, or what else is there, for dates."""
    try:
        return np.array([float(text) for text in texts])
    except ValueError:
        return np.array(texts)


def _number(field: str, column: str, line: int) -> float:
    """An empty field is NaN."""
    try:
        return float(field.strip() or "nan")
    except ValueError as error:
        raise InputError(
            f"line {line} after the header has {field[:50]!r} in the column {column}; expected a number, or nothing "
            "where it was not measured."
        ) from error
