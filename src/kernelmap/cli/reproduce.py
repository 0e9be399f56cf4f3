"""`kernelmap reproduce`: the paper's tables and figures, made anew."""

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich import print
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kernelmap.cli.options import use_threads
from kernelmap.errors import InputError
from kernelmap.files import write_json
from kernelmap.progress import console, progress
from kernelmap.reproduce.darcy_figures import figure_green, figure_microstructure
from kernelmap.reproduce.darcy_table import TABLE3
from kernelmap.reproduce.figures import figure_kernels
from kernelmap.reproduce.mechanics_figure import figure_stiffness
from kernelmap.reproduce.mechanics_table import TABLE4
from kernelmap.reproduce.radial import TABLE1, TABLE2
from kernelmap.reproduce.resolution import cross_resolution
from kernelmap.reproduce.rows import PaperTable
from kernelmap.reproduce.run import make, record_path, records
from kernelmap.reproduce.tables import HEADINGS, RESOLUTION_HEADINGS, Blocks, cells, resolution_cells

What = Literal[
    "table1",
    "table2",
    "table3",
    "table4",
    "figure-kernels",
    "figure-green",
    "figure-microstructure",
    "figure-stiffness",
    "cross-resolution",
]
FIGURES = {
    "figure-kernels": figure_kernels,
    "figure-green": figure_green,
    "figure-microstructure": figure_microstructure,
    "figure-stiffness": figure_stiffness,
}
TABLES = {"table1": TABLE1, "table2": TABLE2, "table3": TABLE3, "table4": TABLE4}

WIDTH = 150
"""Of the tables, in characters: the paper's figures beside ours do not fit a narrow terminal."""


def reproduce(
    what: Annotated[What, tyro.conf.Positional],
    rows: tuple[str, ...] = (),
    epochs: int | None = None,
    out: Path = Path("reproduction"),
    jobs: int = 1,
    threads: int | None = None,
) -> None:
    """Make a table or figure of the paper, with its values beside ours; interrupted, it goes on where it stopped.

    Args:
        what: table1, table2 and figure-kernels (radial kernels), cross-resolution (those at twice the spacing), table3,
            figure-green and figure-microstructure (Darcy flow), table4 and figure-stiffness (hyperelastic specimens).
        rows: of a table, make these rows only, such as nao-302-10.
        epochs: train for so many epochs instead of those declared; such rows are kept under names of their own.
        out: directory of the records, one small JSON file per row, and of the models.
        jobs: rows made at the same time, with one thread each.
        threads: CPU threads of a single job; all by default.
    """
    use_threads(threads)
    if jobs < 1 or (epochs is not None and epochs < 1):
        raise InputError(f"jobs and epochs must be at least 1, got {jobs} and {epochs}.")
    if what not in TABLES:
        if rows or epochs is not None or jobs > 1:
            raise InputError(f"--rows, --epochs and --jobs belong to tables; make those before {what}.")
        return figure(what, out)
    table = TABLES[what].select(rows)
    names = {row.name: row if epochs is None else row.with_epochs(epochs) for row in table.rows.values()}
    missing = [name for name, row in names.items() if not record_path(out, row).exists()]
    if jobs == 1:
        for name in progress(missing, "Rows"):
            console.print(f"making {name}", highlight=False)
            make(names[name], out)
    else:
        together(what, missing, epochs, out, jobs)
    Console(width=WIDTH).print(rendered(table if epochs is None else table.with_epochs(epochs), out))


def figure(what: str, out: Path) -> None:
    """Models that are missing are trained first."""
    if what in FIGURES:
        print(f"figure in {escape(str(FIGURES[what](out)))}")
        return
    made = cross_resolution(out)
    write_json(out / "cross-resolution.json", made)
    Console(width=WIDTH).print(grid(RESOLUTION_HEADINGS, [("", resolution_cells(made))], "Kernel errors in percent"))


def together(what: str, names: list[str], epochs: int | None, out: Path, jobs: int) -> None:
    """Each row by a command of its own, so that its record names the command that makes it."""

    def run(name: str) -> int:
        command = [sys.executable, "-m", "kernelmap.cli.main", "reproduce", what, "--rows", name, "--out", str(out)]
        command += [] if epochs is None else ["--epochs", str(epochs)]
        return subprocess.run([*command, "--threads", "1"], stdout=subprocess.DEVNULL).returncode

    with ThreadPoolExecutor(jobs) as pool:
        codes = list(progress(pool.map(run, names), "Rows", total=len(names)))
    failed = [name for name, code in zip(names, codes, strict=True) if code]
    if failed:
        raise InputError(f"these rows could not be made: {', '.join(failed)}; the messages above say why.")


def rendered(table: PaperTable, out: Path) -> Table:
    title = f"{table.title}; errors in percent, {' / '.join(table.systems).upper()}"
    return grid(HEADINGS, cells(table, records(out, table.rows.values())), title)


def grid(headings: Sequence[str], blocks: Blocks, title: str) -> Table:
    output = Table(title=title)
    for i, heading in enumerate(headings):
        output.add_column(heading, justify="left" if i == 0 else "right")
    for heading, rows in blocks:
        output.add_section()
        if heading:
            output.add_row(f"[bold]{heading}[/]")
        for row in rows:
            output.add_row(*row)
    return output
