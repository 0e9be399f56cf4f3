"""`kernelmap bench`: speed as ratios, measured in one run."""

from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Table

from kernelmap.cli.options import JsonFile
from kernelmap.core.errors import InputError
from kernelmap.core.files import write_json
from kernelmap.core.provenance import provenance
from kernelmap.paper.benchmarks import BENCHMARKS
from kernelmap.paper.benchmarks.own_use import bench_own_use
from kernelmap.paper.benchmarks.plot import plot_discover_benchmark
from kernelmap.report.figures import check_picture


def run(words: list[str]) -> None:
    tyro.cli(bench, prog="kernelmap bench", args=words)


def bench(
    what: Annotated[Literal[(*BENCHMARKS, "own-use")], tyro.conf.Positional],  # pyright: ignore
    json: JsonFile = None,
    plot: Path | None = None,
    repeats: int = 7,
    model: str = "kernel1d",
) -> None:
    """Measure speed, as ratios in one run, or errors on systems unlike those of training.

    Args:
        what: attention: a training step of NAO against the textbook evaluation of the same formulas, and against N.
            darcy: the same on n x n points, where W(x, z) is a matrix: its networks, and its spectral form.
            discover: the time of a discovery, beside DARTR as published, and its growth.
            mechanics: the solver of specimens against full Newton on the paper's mesh.
            own-use: errors, coverage and diagnostics on 864 contexts with other kernels and inputs than in training.
            order-free: the order-free NAO and its exact limit against NAO, and against N and d.
        json: write the figures to this file.
        plot: of `discover`: draw time and memory against N and d to this file.
        repeats: runs of each case; the fastest counts.
        model: of `own-use`: a shipped model's name or a model's directory.
    """
    if plot is not None and what != "discover":
        raise InputError("only `bench discover` draws a plot; leave --plot out.")
    if plot is not None:
        check_picture(plot)
    if repeats < 1:
        raise InputError(f"--repeats must be at least 1, got {repeats}.")
    results = bench_own_use(model) if what == "own-use" else BENCHMARKS[what](repeats)
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
