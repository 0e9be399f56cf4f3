"""`kernelmap predict`: responses to new inputs, from a saved discovery."""

import csv
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich import print
from rich.markup import escape

from kernelmap.core.errors import InputError
from kernelmap.core.files import atomic_path, require_other
from kernelmap.core.progress import working
from kernelmap.io import load_discovery, read_inputs


def run(words: list[str]) -> None:
    tyro.cli(predict, prog="kernelmap predict", args=words)


def predict(
    discovery: Annotated[Path, tyro.conf.Positional],
    file: Annotated[Path, tyro.conf.Positional],
    *,
    out: Path,
) -> None:
    """Predict the responses f to new inputs u, with the standard deviation of a measurement.

    Args:
        discovery: the discovery.h5 that `kernelmap discover` wrote.
        file: new inputs, laid out as the measurements were; f may be left out.
        out: mean and std (and t) in the shape of f, as .npz, or one value in each line as .csv.
    """
    if out.suffix not in (".npz", ".csv"):
        raise InputError(f"--out must name a file .npz or .csv, got {out}.")
    require_other(out, discovery, file)
    found = load_discovery(discovery)
    with working("Predicting"):
        inputs = read_inputs(file, found.kernel)
        mean, std = (inputs.laid_out(values) for values in found.predict(inputs.U, inputs.of_inputs))
    with atomic_path(out) as temporary:
        if out.suffix == ".npz":
            np.savez(temporary, mean=mean, std=std, **inputs.places)  # pyright: ignore
        else:
            _write_csv(temporary, mean, std, inputs.places)
    print(f"{mean.size} responses, of shape {escape(str(mean.shape))}, in {escape(str(out))}")


def _write_csv(path: Path, mean: np.ndarray, std: np.ndarray, places: dict[str, np.ndarray]) -> None:
    """The place in f, counted from 0, and its time where that is known, then mean and std."""
    indices = np.unravel_index(np.arange(mean.size), mean.shape)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*(f"axis{axis}" for axis in range(mean.ndim)), *places, "mean", "std"])
        table.writerows(
            zip(*indices, *(values.ravel() for values in places.values()), mean.flat, std.flat, strict=True)
        )
