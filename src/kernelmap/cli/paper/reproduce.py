"""`kernelmap reproduce`: the paper's tables and figures, made anew."""

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table

from kernelmap.cli.options import use_threads
from kernelmap.core.errors import InputError
from kernelmap.core.files import write_json
from kernelmap.core.files.limits import check_count
from kernelmap.core.files.processes import PARENT
from kernelmap.core.progress import console, progress
from kernelmap.core.terminal import say
from kernelmap.paper.catalogue import CROSS_RESOLUTION, FIGURES, TABLES
from kernelmap.paper.resolution import cross_resolution
from kernelmap.paper.tables.rows import PaperTable
from kernelmap.paper.tables.run import make, record_path, records
from kernelmap.paper.tables.text import HEADINGS, RESOLUTION_HEADINGS, Blocks, cells, resolution_cells

What = Literal[(*TABLES, *FIGURES, CROSS_RESOLUTION)]  # pyright: ignore

WIDTH = 150
"""Of the tables, in characters: the paper's figures beside ours do not fit a narrow terminal."""


def run(words: list[str]) -> None:
    tyro.cli(reproduce, prog="kernelmap reproduce", args=words)


def reproduce(
    what: Annotated[What, tyro.conf.Positional],  # pyright: ignore
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
    check_count(jobs, "--jobs")
    if epochs is not None and epochs < 1:
        raise InputError(f"--epochs must be at least 1, got {epochs}.")
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
        # Rows that share a training run are made by one process.
        shared: dict[str, list[str]] = {}
        for name in missing:
            shared.setdefault(names[name].run_name, []).append(name)
        together(what, list(shared.values()), epochs, out, jobs)
    Console(width=WIDTH).print(rendered(table if epochs is None else table.with_epochs(epochs), out))


def figure(what: str, out: Path) -> None:
    """Models that are missing are trained first."""
    if what in FIGURES:
        say(f"figure in {FIGURES[what](out)}")
        return
    made = cross_resolution(out)
    write_json(out / "cross-resolution.json", made)
    Console(width=WIDTH).print(grid(RESOLUTION_HEADINGS, [("", resolution_cells(made))], "Kernel errors in percent"))


def together(what: str, groups: list[list[str]], epochs: int | None, out: Path, jobs: int) -> None:
    """Each group of rows by a command of its own, so that their records name the command that makes them."""

    def make_group(names: list[str]) -> int:
        command = [sys.executable, "-m", "kernelmap.cli.main", "reproduce", what, "--rows", *names, "--out", str(out)]
        command += [] if epochs is None else ["--epochs", str(epochs)]
        parent = os.environ | {PARENT: str(os.getpid())}
        return subprocess.run([*command, "--threads", "1"], stdout=subprocess.DEVNULL, env=parent).returncode

    with ThreadPoolExecutor(jobs) as pool:
        codes = list(progress(pool.map(make_group, groups), "Rows", total=len(groups)))
    failed = [name for names, code in zip(groups, codes, strict=True) if code for name in names]
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
