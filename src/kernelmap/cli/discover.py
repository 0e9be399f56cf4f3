"""`kernelmap discover`: the hidden kernel of a user's system, with error bar and report."""

from math import isnan
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from kernelmap.cli.options import JsonFile
from kernelmap.core.errors import InputError
from kernelmap.core.progress import working
from kernelmap.core.terminal import say
from kernelmap.discovery import Discovery
from kernelmap.discovery.diagnostics import MOST_NAMED
from kernelmap.report import discover_file, discover_files
from kernelmap.report.besides import besides
from kernelmap.report.many import SUMMARY

MODEL = "kernel1d"


def run(words: list[str]) -> None:
    tyro.cli(discover, prog="kernelmap discover", args=words)


def discover(
    files: Annotated[tuple[Path, ...], tyro.conf.Positional],
    model: str | None = None,
    out: Path = Path("kernelmap-discovery"),
    json: JsonFile = None,
    jobs: int = 1,
    device: str | None = None,
    keep_outliers: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """Discover the hidden kernel behind measured pairs (u, f), with a 95 % band, a check and a report.

    Args:
        files: the measurements: HDF5, NPZ, MAT or CSV, laid out as docs/your-data.md says. Several files get a
            directory each in --out, and a table summary.csv; a run that was killed goes on where it was.
        model: a shipped model's name or a model's directory; by default the one for the file's operator.
        out: directory for the report, the kernel and the figure.
        json: write kernel, band and all numbers to this file.
        jobs: processes for several files; -1 for one per core.
        device: cpu, cuda, cuda:1, ...; the CPU by default.
        keep_outliers: give responses far from what the others say the same weight.
    """
    if not files:
        raise InputError("give one file of measurements or more: kernelmap discover FILE ...")
    first, *others = files
    if others:
        return discover_many(files, model, out, json, jobs, device, keep_outliers)
    with working("Reading the file"):
        discovery = discover_file(first, model, out, json, device, keep_outliers)
    if "radius" in (about := discovery.about):
        say(f"No radius given: {about['radius']:.4g} has the largest evidence of {about['radii']}.")
    Console().print(results_table(discovery))
    print_diagnostics(discovery)
    say(f"Report in {out / 'report.html'}, kernel in {out / 'discovery.h5'}.")


def discover_many(
    files: tuple[Path, ...],
    model: str | None,
    out: Path,
    json: Path | None,
    jobs: int,
    device: str | None,
    keep_outliers: bool,
) -> None:
    if json is not None:
        raise InputError("--json is for one file; the numbers of several are in summary.csv and each discovery.h5.")
    rows = discover_files(files, model, out, jobs, device, keep_outliers)
    failed = [row["problem"] for row in rows if row["problem"]]
    say(f"{len(rows) - len(failed)} of {len(rows)} kernels found; table in {out / SUMMARY}.")
    if failed:
        raise InputError("\n".join(failed))


def results_table(discovery: Discovery) -> Table:
    def percent(value: float) -> str:
        return "not measured" if isnan(value) else f"{value:.2%}"

    table = Table(title="Discovered kernel", show_header=False)
    table.add_row("pairs", str(discovery.context.d))
    table.add_row("noise found on f" if discovery.has_band else "not explained of f", percent(discovery.noise))
    for name, lines in besides(discovery):
        table.add_row(name, "\n".join(lines[:MOST_NAMED]))
    if discovery.has_band:
        table.add_row("expected error of the kernel", percent(discovery.identifiability.expected_error))
    if (check := discovery.check) is not None:
        table.add_row("error on pairs kept back", percent(check.error))
        table.add_row("of them inside their 95 % interval", percent(check.coverage))
        table.add_row("classical estimate's error on them", percent(check.classical_error))
    if (informed := discovery.identifiability.informed_directions) is not None:
        table.add_row("directions of K determined by the data", str(informed))
    if discovery.law is not None:
        best = discovery.law.best
        table.add_row("law", "none of the simple ones fits" if best is None else f"{best.family}\n{best}")
    worst = [f"{discovery.context.name(r.pair)}: {r.size:+.1f}" for r in discovery.residuals[:3]]
    if worst:
        table.add_row("largest residuals, in standard deviations", "\n".join(worst))
    return table


def print_diagnostics(discovery: Discovery) -> None:
    for diagnostic in discovery.diagnostics:
        Console().print(Panel(f"{diagnostic.cause} {diagnostic.remedy}", title=diagnostic.seen, border_style="yellow"))
