"""`kernelmap check`: what a file of measurements holds, or what is wrong with it, and the lines that mend it."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kernelmap.core.errors import InputError
from kernelmap.core.progress import working
from kernelmap.core.terminal import say, shown
from kernelmap.io import read_measurements
from kernelmap.io.formats import file_format
from kernelmap.report.results import default_model

READING = {
    "NPZ": ("import numpy as np", "d = dict(np.load({path!r}))"),
    "HDF5": ("import h5py, numpy as np", "d = {{name: values[()] for name, values in h5py.File({path!r}).items()}}"),
    "MAT v5": ("import scipy.io, numpy as np", "d = scipy.io.loadmat({path!r})"),
}
"""The arrays of a file as a dict `d`; files of other kinds hold texts or columns in ways of their own."""


def run(words: list[str]) -> None:
    tyro.cli(check, prog="kernelmap check", args=words)


def check(file: Annotated[Path, tyro.conf.Positional]) -> None:
    """Say what was found in a file of your own measurements, or exactly what is wrong with it.

    Where it is known how, three lines of Python follow that write a file which is right, beside yours.

    Args:
        file: HDF5 (.h5), NPZ (.npz), MAT (.mat) or CSV (.csv), in a layout of docs/your-data.md.
    """
    try:
        with working("Reading the file"):
            measurements = read_measurements(file)
    except InputError as error:
        if not error.mended or not (lines := mending_lines(file, error.mended)):
            raise
        raise InputError(f"{error}\nThese lines write a file that is right:\n{lines}") from error
    table = Table(title=Text(shown(file.name)), show_header=False)
    for what, found in (measurements.found | {"model": default_model(measurements.context)}).items():
        table.add_row(Text(what), Text(shown(found)))
    Console().print(table)
    for name in measurements.others:
        say(f"If {name!r} is what you mean, these lines say so:\n{mending_lines(file, {'operator': repr(name)})}")


def mending_lines(path: Path, mended: dict[str, str]) -> str:
    """Three lines that write a second file with these entries in it; none for kinds of files that are not listed."""
    if (kind := file_format(path)) not in READING:
        return ""
    imports, reading = READING[kind]
    entries = ", ".join(f'"{name}": {expression}' for name, expression in mended.items())
    target = str(path.with_name(f"{path.stem}-mended.npz"))
    lines = (imports, reading.format(path=str(path)), f"np.savez({target!r}, **(d | {{{entries}}}))")
    return "\n".join(f"    {line}" for line in lines)
