"""`kernelmap suggest`: what to measure next."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kernelmap.cli.discover import MODEL
from kernelmap.cli.options import JsonFile
from kernelmap.core.errors import InputError
from kernelmap.core.files import write_json
from kernelmap.core.progress import working
from kernelmap.core.terminal import shown
from kernelmap.discovery import discover
from kernelmap.io import load_model, read_candidates, read_measurements


def run(words: list[str]) -> None:
    tyro.cli(suggest, prog="kernelmap suggest", args=words)


def suggest(
    file: Annotated[Path, tyro.conf.Positional],
    candidates: Path | None = None,
    model: str = MODEL,
    count: int = 3,
    json: JsonFile = None,
) -> None:
    """Name the places or times, of those without f, whose measurement would narrow the kernel's band most.

    Args:
        file: the measurements, laid out as docs/your-data.md says, with their radius: a mesh or a time series.
        candidates: another file, with the inputs that could be measured; by default the places of `file` without f.
        model: a shipped model's name or a model's directory.
        count: how many, each chosen as if those before it had been measured.
        json: write them to this file.
    """
    measurements = read_measurements(file)
    if not measurements.has_radius:
        raise InputError(f"{file}: give the radius of the kernel, which `kernelmap discover` can find.")
    with working("Finding the kernel"):
        found = discover(load_model(model)[0], measurements.context)
    possible = read_candidates(file if candidates is None else candidates, found.kernel)
    suggested = found.suggest(possible.U, count, possible.places)
    table = Table("measure", "mean band then", "of now", "information, nats", title=f"Of {len(possible.places)} places")
    for suggestion in suggested.suggestions:
        ratio = suggestion.band / suggested.band if suggested.band else 1.0
        table.add_row(
            Text(shown(suggestion.name)), f"± {suggestion.band:.3g}", f"{ratio:.0%}", f"{suggestion.information:.2g}"
        )
    Console().print(table)
    if json is not None:
        write_json(json, suggested.to_json())
