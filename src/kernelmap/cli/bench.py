"""`kernelmap bench`: speed as ratios, measured in one run."""

from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Table

from kernelmap.benchmarks.attention import bench_attention
from kernelmap.benchmarks.darcy import bench_darcy
from kernelmap.benchmarks.discover import bench_discover
from kernelmap.benchmarks.mechanics import bench_mechanics
from kernelmap.cli.options import JsonFile
from kernelmap.errors import InputError
from kernelmap.files import write_json
from kernelmap.plots import plot_discover_benchmark
from kernelmap.provenance import provenance

BENCHMARKS = {
    "attention": bench_attention,
    "darcy": bench_darcy,
    "discover": bench_discover,
    "mechanics": bench_mechanics,
}


def bench(
    what: Annotated[Literal["attention", "darcy", "discover", "mechanics"], tyro.conf.Positional],
    json: JsonFile = None,
    plot: Path | None = None,
    repeats: int = 7,
) -> None:
    """Measure speed, as ratios in one run.

    Args:
        what: attention: a training step of NAO against the textbook evaluation of the same formulas, and against N.
            darcy: the same on n x n points, where W(x, z) is a matrix: its networks, and its low-rank form.
            discover: the posterior map against DARTR as published and against the bare algebra it needs.
            mechanics: the solver of specimens against full Newton on the paper's mesh.
        json: write the figures to this file.
        plot: of `discover`: draw time and memory against N and d to this file.
        repeats: runs of each case; the fastest counts.
    """
    if plot is not None and what != "discover":
        raise InputError("only `bench discover` draws a plot; leave --plot out.")
    if repeats < 1:
        raise InputError(f"--repeats must be at least 1, got {repeats}.")
    results = BENCHMARKS[what](repeats)
    if json is not None:
        write_json(json, results | provenance())
    if plot is not None:
        plot_discover_benchmark(plot, results["cases"])
    table = Table(title=f"bench {what}")
    for column in results["cases"][0]:
        table.add_column(column, justify="right")
    for case in results["cases"]:
        table.add_row(*(_cell(value) for value in case.values()))
    console = Console(width=max(140, Console().width))
    console.print(table)
    for name, value in results.items():
        if name != "cases":
            console.print(f"{name}: {_cell(value)}")


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
