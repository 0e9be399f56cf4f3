"""`kernelmap evaluate`: errors of a model on a problem's test systems."""

from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kernelmap.cli.options import JsonFile, Problem
from kernelmap.evaluation import evaluate as errors_of
from kernelmap.files import write_json
from kernelmap.model import load_model
from kernelmap.problems.radial import Variant, radial
from kernelmap.provenance import provenance


def evaluate(
    model: Annotated[str, tyro.conf.Positional],
    problem: Problem,
    d: int | None = None,
    variant: Variant = "released",
    dx: float = 0.0125,
    noise: float = 0.0,
    seed: int = 0,
    json: JsonFile = None,
) -> None:
    """Errors of a model on systems it has never seen: operator error on context and held-out pairs, kernel error.

    Args:
        model: a shipped model's name (see `kernelmap models`) or a model's directory.
        problem: radial: nonlocal diffusion with a radial kernel.
        d: pairs in a context; the model's own by default.
        variant: as the paper's text says, or as the authors' released data are.
        dx: mesh width of locations and radii; 0.0125 or 0.025.
        noise: standard deviation of noise on f, relative to the root mean square of f.
        seed: of the noise.
        json: write the errors, as fractions, to this file.
    """
    loaded, _ = load_model(model)
    test = radial("sine", variant, dx).test
    if noise:
        test = test.with_noise(noise, seed)
    pairs = loaded.shape.d if d is None else d
    results = errors_of(loaded.double(), test, pairs)
    if json is not None:
        write_json(Path(json), results | {"model": model, "d": pairs, "data": test.about, **provenance()})
    Console().print(table(results, f"{escape(model)} on {problem} ({variant}), d = {pairs}"))


HEADINGS = {
    "operator_error_context": "operator error\ncontext",
    "operator_error_heldout": "operator error\nheld out",
    "kernel_error": "kernel error",
    "kernel_error_pooled": "kernel error\npooled",
    "coverage95": "coverage\nof 95 % band",
}


def table(results: dict[str, Any], title: str) -> Table:
    systems = results["systems"]
    output = Table("system", title=title)
    for key in next(iter(systems.values())):
        output.add_column(HEADINGS[key], justify="right")
    for name, errors in systems.items():
        output.add_row(name, *("-" if value is None else f"{value:.2%}" for value in errors.values()))
    return output
