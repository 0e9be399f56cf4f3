"""What `kernelmap discover` leaves for one file of measurements: report, figure, kernel and the discovery itself."""

from dataclasses import replace
from pathlib import Path

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.files import file_sha256, locked, require_other, together, write_json
from kernelmap.core.progress import part
from kernelmap.core.provenance import provenance
from kernelmap.core.terminal import encodable
from kernelmap.discovery import Discovery, Suggestions, discover
from kernelmap.discovery.laws import has_laws
from kernelmap.discovery.radius import select_radius
from kernelmap.io import Measurements, find_model, load_model, read_candidates, read_measurements
from kernelmap.posterior import Kernel1dMap
from kernelmap.report.drawing import coordinate
from kernelmap.report.figures import kernel_figure, save_figure
from kernelmap.report.page import write_report

DISCOVERY = "discovery.h5"

MOST_TOKENS = 5_000_000
"""Of candidates for the next measurement, in a report."""


def default_model(context: Context) -> str:
    """The shipped model for the operator of these pairs."""
    if context.operator == "fields":
        return "darcy" if context.x.components == context.y.components == 1 else "mechanics"
    return "integral" if context.operator == "integral" else "kernel1d"


def discover_file(
    file: Path,
    model: str | None,
    out: Path,
    json: Path | None = None,
    device: str | None = None,
    keep_outliers: bool = False,
) -> Discovery:
    """Find the kernel behind a file, and write all results to the directory `out`, which nobody else may meanwhile.

    Without a model, that of the file's operator is taken.
    """
    if json is not None:
        require_other(json, file)
    with part("Reading the file", 0.0, 0.1):
        measurements = read_measurements(file)
    with locked(out):
        with part("", 0.1, 0.8):
            discovery = discover_measured(measurements, file, model, device, keep_outliers)
        with part("Writing the report", 0.8, 1.0):
            write_results(discovery, out, json)
    return discovery


def discover_measured(
    measurements: Measurements,
    file: Path,
    model: str | None = None,
    device: str | None = None,
    keep_outliers: bool = False,
) -> Discovery:
    """The kernel behind what was read from a file: with its radius, if none was given, its law, and what to measure."""
    model = model or default_model(measurements.context)
    loaded, _ = load_model(model)
    if keep_outliers and isinstance(loaded, Kernel1dMap):
        loaded.keep_outliers = True
    about = {"model": encodable(model), "data": encodable(file.name), **hashes(file, model), **provenance()}
    if keep_outliers:
        about["keep_outliers"] = True
    if measurements.labels:
        about["labels"] = measurements.labels
    context = measurements.context
    if not measurements.has_radius and isinstance(loaded, Kernel1dMap):
        with part("Choosing the radius", 0.0, 0.3):
            context, about["radius"], evidence = select_radius(loaded, context)
        about["radii"] = ", ".join(f"{tried:.4g}" for tried in evidence)
    with part("", 0.3, 0.8):
        discovery = discover(loaded, context, about, device)
    if has_laws(discovery.context, discovery.posterior):
        with part("Trying simple laws", 0.8, 1.0):
            discovery = replace(discovery, law=discovery.closed_form(), next=_suggested(file, measurements, discovery))
    return discovery


def _suggested(file: Path, measurements: Measurements, discovery: Discovery) -> Suggestions | None:
    """Of the places in the file without f; None where there are none, or too many to look at in a moment."""
    if (
        not 0 < measurements.places * discovery.kernel.y.size <= MOST_TOKENS
        or measurements.places == discovery.context.d
    ):
        return None
    try:
        candidates = read_candidates(file, discovery.kernel)
    except InputError:
        return None
    return discovery.suggest(candidates.U, places=candidates.places)


def write_results(discovery: Discovery, out: Path, json: Path | None = None) -> None:
    """The report, the kernel with its band, the figure and, if wanted, the numbers. Those of `out` appear together.

    Whoever calls it holds the lock of `out`.
    """
    with together(out) as staging:
        figure = kernel_figure(discovery)
        write_report(discovery, staging / "report.html", figure=figure)
        save_figure(figure, staging / "kernel.png")
        one_coordinate = discovery.kernel.x.is_point and discovery.kernel.y.dim == 1
        std = discovery.std if discovery.has_band else None
        discovery.kernel.export(
            staging / ("kernel.csv" if one_coordinate else "kernel.npz"), std, coordinate(discovery)
        )
        discovery.save(staging / DISCOVERY)
    if json is not None:
        write_json(json, discovery.to_json())


def hashes(file: Path, model: str) -> dict[str, str]:
    """SHA-256 of model and data: the same hashes, the same discovery."""
    paths = {"model_sha256": find_model(model) / "weights.safetensors", "data_sha256": file}
    return {name: file_sha256(path) for name, path in paths.items()}
