"""`kernelmap calibrate`: whether a model's intervals hold what they say."""

from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.console import Console
from rich.table import Table

from kernelmap.cli.options import JsonFile
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.files import write_json
from kernelmap.core.progress import progress
from kernelmap.core.provenance import provenance
from kernelmap.evaluation.calibration import LEVELS
from kernelmap.evaluation.calibration import calibrate as run_calibration
from kernelmap.io import load_model
from kernelmap.posterior import Kernel1dMap
from kernelmap.posterior.kernel1d.draws import draw_from_prior
from kernelmap.problems.world import draw_system
from kernelmap.report.figures import check_picture

SEED = 2_000_000
"""Of systems that no training draws."""


def run(words: list[str]) -> None:
    tyro.cli(calibrate, prog="kernelmap calibrate", args=words)


def calibrate(
    model: Annotated[str, tyro.conf.Positional],
    systems: int = 200,
    d: int | None = None,
    noise: float | None = None,
    from_prior: bool = False,
    json: JsonFile = None,
    plot: Path | None = None,
) -> None:
    """Simulation-based calibration and coverage of a model of kernels of one coordinate.

    Args:
        model: a shipped model's name or a model's directory.
        systems: how many are drawn.
        d: pairs of each; random by default.
        noise: relative noise on f; random, and often none, by default.
        from_prior: draw kernels, amplitudes and errors from the model's own prior, not from the simulated world.
        json: write the figures to this file.
        plot: draw ranks and coverage to this file.
    """
    if systems < 1:
        raise InputError(f"--systems must be at least 1, got {systems}.")
    if d is not None and d < 2:
        raise InputError(f"--d must be at least 2 pairs, got {d}.")
    if noise is not None and not 0 <= noise < inf:
        raise InputError(f"--noise must be a number from 0 on, relative to the size of f, got {noise}.")
    if plot is not None:
        check_picture(plot)
    loaded, _ = load_model(model)
    if not isinstance(loaded, Kernel1dMap):
        raise InputError(f"{model} is not a model of kernels of one coordinate; calibrate `kernel1d` or `radial`.")

    def drawn() -> Iterator[tuple[Context, torch.Tensor]]:
        for number in progress(range(systems), "Calibration"):
            context, kernel, _ = draw_system(SEED, number, d, noise)
            if from_prior:
                yield draw_from_prior(loaded.prior, context, noise, seed=number)
            else:
                yield context, torch.from_numpy(kernel)

    found = run_calibration(loaded, drawn(), seed=0)
    if json is not None:
        write_json(json, found.summary() | {"d": d, "noise": noise, "from_prior": from_prior} | provenance())
    if plot is not None:
        found.plot(plot)
    table = Table(title=f"{model}: {systems} systems {'of its prior' if from_prior else 'of the simulated world'}")
    table.add_column("interval")
    table.add_column("holds the truth")
    for level in LEVELS:
        table.add_row(f"{level:.0%}", f"{found.coverage(level):.1%}")
    Console().print(table)
