"""`kernelmap check`: what a file of measurements holds, or what is wrong with it."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kernelmap.core.progress import working
from kernelmap.core.terminal import shown
from kernelmap.io import read_measurements


def run(words: list[str]) -> None:
    tyro.cli(check, prog="kernelmap check", args=words)


def check(file: Annotated[Path, tyro.conf.Positional]) -> None:
    """Say what was found in a file of your own measurements, or exactly what is wrong with it.

    Args:
        file: HDF5 (.h5), NPZ (.npz), MAT (.mat) or CSV (.csv), in a layout of docs/your-data.md.
    """
    table = Table(title=Text(shown(file.name)), show_header=False)
    with working("Reading the file"):
        measurements = read_measurements(file)
    for what, found in measurements.found.items():
        table.add_row(Text(what), Text(shown(found)))
    Console().print(table)
