"""`kernelmap bench`: speed as ratios, measured in one run."""

from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table

from kernelmap.benchmarks.attention import bench_attention
from kernelmap.cli.options import JsonFile
from kernelmap.files import write_json
from kernelmap.provenance import provenance


def bench(what: Annotated[Literal["attention"], tyro.conf.Positional], json: JsonFile = None, repeats: int = 7) -> None:
    """Measure speed, as ratios in one run.

    Args:
        what: attention: a training step of NAO against the textbook evaluation of the same formulas, and against N.
        json: write the figures to this file.
        repeats: runs of each case; the fastest counts.
    """
    results = bench_attention(repeats)
    if json is not None:
        write_json(Path(json), results | provenance())
    table = Table(title="NAO, forward and backward")
    for column in (
        "N",
        "d",
        "dk",
        "batch",
        "dtype",
        "threads",
        "textbook",
        "kernelmap",
        "ratio",
        "difference",
        "peak memory",
    ):
        table.add_column(column, justify="right")
    for case in results["cases"]:
        textbook = ["-"] * 3
        if case["textbook_s"] is not None:
            textbook = [
                f"{1e3 * case['textbook_s']:.0f} ms",
                f"{case['ratio']:.1f}",
                f"{case['max_relative_difference']:.1e}",
            ]
        shape = [str(case[key]) for key in ("n", "d", "dk", "batch", "dtype", "threads")]
        time = f"{1e3 * case['kernelmap_s']:.0f} ms"
        table.add_row(*shape, textbook[0], time, *textbook[1:], f"{case['peak_memory_gb']:.2f} GB")
    Console().print(table)
