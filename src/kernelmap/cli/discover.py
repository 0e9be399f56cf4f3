"""`kernelmap discover`: the hidden kernel of a user's system, with error bar and report."""

import hashlib
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from kernelmap.cli.options import JsonFile
from kernelmap.discovery import Discovery
from kernelmap.discovery import discover as run
from kernelmap.files import write_json
from kernelmap.model import find_model, load_model
from kernelmap.provenance import provenance
from kernelmap.reading import read_measurements
from kernelmap.report import plot, write_report

MODEL = "radial"


def discover(
    file: Annotated[Path, tyro.conf.Positional],
    model: str = MODEL,
    out: Path = Path("kernelmap-discovery"),
    json: JsonFile = None,
) -> None:
    """Discover the hidden kernel behind measured pairs (u, f), with a 95 % band, a check and a report.

    Args:
        file: the measurements: HDF5, NPZ or MAT, laid out as docs/your-data.md says.
        model: a shipped model's name or a model's directory.
        out: directory for the report, the kernel and the figure.
        json: write kernel, band and all numbers to this file.
    """
    loaded, _ = load_model(model)
    measurements = read_measurements(file)
    hashes = {"model_sha256": _sha256(find_model(model) / "weights.safetensors"), "data_sha256": _sha256(file)}
    discovery = run(loaded, measurements.context, {"model": model, "data": file.name, **hashes, **provenance()})
    write_results(discovery, out, json)
    Console().print(results_table(discovery))
    print_cautions(discovery)
    Console().print(f"Report in {escape(str(out / 'report.html'))}, kernel in {escape(str(out / 'discovery.h5'))}.")


def write_results(discovery: Discovery, out: Path, json: Path | None) -> None:
    """The report, the kernel with its band, the figure and, if wanted, the numbers."""
    write_report(discovery, out / "report.html")
    discovery.save(out / "discovery.h5")
    plot(discovery, out / "kernel.png")
    if json is not None:
        write_json(json, as_json(discovery))


def as_json(discovery: Discovery) -> dict[str, Any]:
    kernel, std = discovery.kernel.values, discovery.std
    arrays: dict[str, Any] = {"y": discovery.kernel.y.points.tolist(), "kernel": kernel.tolist(), "std": std.tolist()}
    arrays["classical"] = discovery.classical.kernel.values.tolist()
    if (hidden := discovery.hidden) is not None:
        field = {name: getattr(hidden, name).tolist() for name in ("points", "values", "std")}
        arrays["hidden"] = {"name": hidden.name, **hidden.constants, **field}
    return discovery.summary() | {"cautions": [vars(c) for c in discovery.cautions]} | arrays | discovery.about


def results_table(discovery: Discovery) -> Table:
    def percent(value: float | None) -> str:
        return "-" if value is None else f"{value:.2%}"

    table = Table(title="Discovered kernel", show_header=False)
    table.add_row("pairs", str(discovery.context.d))
    table.add_row("noise found on f", percent(discovery.noise))
    table.add_row("error on pairs kept back", percent(discovery.heldout_error))
    table.add_row("of them inside their 95 % band", percent(discovery.heldout_coverage))
    table.add_row("classical estimate's error on them", percent(discovery.classical_error))
    table.add_row("directions of K told by the data", str(discovery.identifiability.determined))
    return table


def print_cautions(discovery: Discovery) -> None:
    for caution in discovery.cautions:
        Console().print(Panel(f"{caution.cause} {caution.remedy}", title=caution.seen, border_style="yellow"))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
