"""What the app does, without a page: a file read, a kernel found, all that can be taken away from it."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kernelmap.app.lines import python_lines
from kernelmap.app.uploads import Upload
from kernelmap.core.errors import InputError
from kernelmap.core.posterior import KernelPosterior
from kernelmap.core.progress import Listener, listening, part
from kernelmap.discovery import Discovery
from kernelmap.discovery.check import largest_residuals
from kernelmap.io import Measurements, read_measurements
from kernelmap.io.formats import file_format, read_entries
from kernelmap.io.measurements import KNOWN
from kernelmap.report.results import default_model, discover_measured, write_results

WANTED = (".html", ".csv", ".npz", ".png", ".h5")
"""What a user takes away; the list of what a directory holds is not among it."""

FEWEST = 4
"""Pairs that must be left."""


@dataclass(frozen=True)
class Settings:
    """What the user says beside the file: entries in the place of its own, and pairs that are left out."""

    entries: Mapping[str, str | float] = field(default_factory=dict)
    left_out: tuple[int, ...] = ()


@dataclass(frozen=True)
class Seen:
    """A file as `kernelmap check` sees it, and its arrays, for pictures."""

    measurements: Measurements
    entries: dict[str, Any]


@dataclass(frozen=True)
class Pair:
    """A pair by its number in the file, its name, and its standardised residual."""

    number: int
    name: str
    residual: float


@dataclass(frozen=True)
class Found:
    """A discovery, its pairs, the lines of Python that repeat it, and the files to download."""

    label: str
    discovery: Discovery
    pairs: tuple[Pair, ...]
    lines: str
    files: dict[str, bytes]


def see(upload: Upload, settings: Settings) -> Seen:
    with upload.on_disk() as path:
        measurements = read_measurements(path, settings.entries)
        entries = read_entries(path, file_format(path), KNOWN)
    return Seen(measurements, {name: value for name, value in entries.items() if isinstance(value, np.ndarray)})


def find(upload: Upload, settings: Settings, label: str, listener: Listener) -> Found:
    with upload.on_disk() as path, listening(listener):
        with part("Reading the file", 0.0, 0.05):
            measurements = read_measurements(path, settings.entries)
        kept = [number for number in range(measurements.context.d) if number not in settings.left_out]
        if len(kept) < FEWEST:
            raise InputError(f"{len(kept)} pairs are left; leave out fewer.")
        whole = measurements.context
        measurements = replace(measurements, context=whole.select(torch.tensor(kept)))
        with part("", 0.05, 0.8):
            discovery = discover_measured(measurements, path)
        lines = python_lines(upload.name, default_model(whole), settings.entries, settings.left_out)
        discovery = replace(discovery, about=discovery.about | {"command": lines})
        with part("Writing the report", 0.8, 1.0):
            files = written(discovery) | {"repeat.py": lines.encode()}
    residuals = sorted((kept[one.pair], one.size) for one in _residuals(discovery))
    pairs = tuple(Pair(number, whole.name(number), size) for number, size in residuals)
    return Found(label, discovery, pairs, lines, files)


def _residuals(discovery: Discovery) -> tuple[Any, ...]:
    if not isinstance(discovery.posterior, KernelPosterior):
        return ()
    with torch.no_grad():
        return largest_residuals(discovery.posterior, discovery.context.d)


def written(discovery: Discovery) -> dict[str, bytes]:
    """What `kernelmap discover` writes to its directory."""
    with tempfile.TemporaryDirectory(prefix="kernelmap-app-") as folder:
        out = Path(folder) / "out"
        out.mkdir()
        write_results(discovery, out)
        return {path.name: path.read_bytes() for path in sorted(out.iterdir()) if path.suffix in WANTED}
