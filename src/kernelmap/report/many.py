"""Discoveries of many files: in parallel, going on where a run was killed, with a table of all.

Each file has a directory of its own. One that holds the discovery of the same data by the same model and version is
finished and is left as it is. A file that cannot be used does not stop the others.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kernelmap.core.errors import InputError
from kernelmap.core.files import atomic_path, existing_file, locked
from kernelmap.core.files.limits import check_count
from kernelmap.core.files.processes import ending_with_us
from kernelmap.core.files.together import is_whole
from kernelmap.core.progress import progress
from kernelmap.core.provenance import provenance
from kernelmap.io import find_model
from kernelmap.io.discoveries import read_numbers
from kernelmap.report.results import DISCOVERY, discover_file, hashes

SUMMARY = "summary.csv"
NUMBERS = ("pairs", "noise", "check_error", "check_coverage", "check_classical_error", "diagnostics")
COLUMNS: tuple[str, ...] = ("file", *NUMBERS, "problem")

Row = dict[str, Any]


def discover_files(
    files: Sequence[Path],
    model: str | None,
    out: Path,
    jobs: int = -1,
    device: str | None = None,
    keep_outliers: bool = False,
) -> list[Row]:
    """One row for every file, with its numbers or, under `problem`, the sentence that says why there are none.

    `jobs` processes work on it, -1 for one per core; inside `joblib.parallel_config("dask")` those of the cluster do.
    """
    if jobs != -1:
        check_count(jobs, "--jobs, a number of processes, or -1 for one per core,")
    twice = [stem for stem, count in Counter(file.stem for file in files).items() if count > 1]
    if twice:
        raise InputError(f"several files are named {', '.join(twice)}; results are kept by name, so rename them.")
    if model is not None:
        find_model(model)
    with locked(out):
        rows = dict(progress(_all(files, model, out, jobs, device, keep_outliers), "Discovering", total=len(files)))
        ordered = [rows[file] for file in files]
        _write_table(out / SUMMARY, ordered)
    return ordered


def _all(
    files: Sequence[Path], model: str | None, out: Path, jobs: int, device: str | None, keep_outliers: bool
) -> Iterator[tuple[Path, Row]]:
    """Rows in the order in which they are ready."""
    from joblib import Parallel, delayed

    tasks = (delayed(_row)(file, model, out / file.stem, device, keep_outliers) for file in files)
    yield from Parallel(n_jobs=jobs, return_as="generator_unordered", **ending_with_us())(tasks)  # pyright: ignore


def _row(file: Path, model: str | None, out: Path, device: str | None, keep_outliers: bool) -> tuple[Path, Row]:
    try:
        existing_file(file, "a file of measurements (HDF5, NPZ, MAT or CSV)")
        if not _finished(out / DISCOVERY, file, model, keep_outliers):
            discover_file(file, model, out, device=device, keep_outliers=keep_outliers)
        numbers = read_numbers(out / DISCOVERY)[1]
        return file, {"file": str(file), **{name: numbers.get(name) for name in NUMBERS}, "problem": ""}
    except InputError as error:
        return file, {"file": str(file), "problem": str(error)}
    except Exception as error:  # a fault of ours in one file must not lose the others either
        return file, {"file": str(file), "problem": f"{file}: unexpected {type(error).__name__}: {error}"}


def _finished(path: Path, file: Path, model: str | None, keep_outliers: bool) -> bool:
    if not is_whole(path.parent):
        return False
    try:
        about = read_numbers(path)[0]
    except InputError:
        return False
    wanted = hashes(file, model or about["model"]) | {"version": provenance()["version"]}
    if about.get("keep_outliers", False) != keep_outliers:
        return False
    return all(about.get(name) == value for name, value in wanted.items())


def _write_table(path: Path, rows: Sequence[Row]) -> None:
    with atomic_path(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(rows)
