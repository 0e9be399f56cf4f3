"""`kernelmap evaluate`: errors of a model on a problem's test systems."""

from collections.abc import Callable
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kernelmap.cli.options import Flat, JsonFile, choose
from kernelmap.core.files import write_json
from kernelmap.core.provenance import provenance
from kernelmap.io import load_model
from kernelmap.problems import PROBLEMS, Problem

HEADINGS = {
    "operator_error_context": "operator error\ncontext",
    "operator_error_heldout": "operator error\nheld out",
    "kernel_error": "kernel error",
    "kernel_error_pooled": "kernel error\npooled",
    "coverage95": "coverage\nof 95 % band",
    "microstructure_accuracy": "phases found",
    "far_mass": "mass beyond\ntwo steps",
}


def run(words: list[str]) -> None:
    asks = words[:1] if words[:1] in (["--help"], ["-h"]) else words[1:]
    problem = choose("evaluate", "MODEL ", PROBLEMS, asks)
    prog = f"kernelmap evaluate {words[0]} {problem.name}"
    tyro.cli(command(words[0], problem), prog=prog, args=words[2:])


def command(model: str, problem: type[Problem]) -> Callable[..., None]:
    """The command for a model and a problem."""

    def evaluate(
        *,
        d: int | None = None,
        given: Annotated[problem, Flat],  # pyright: ignore[reportInvalidTypeForm]
        json: JsonFile = None,
        device: str | None = None,
    ) -> None:
        """Errors of a model on systems it has never seen: operator error on context and held-out pairs, kernel error.

        Args:
            d: pairs in a context; the model's own by default.
            json: write the errors, as fractions, to this file.
            device: cpu, cuda, cuda:1, ...; the CPU by default.
        """
        loaded, _ = load_model(model)
        pairs = loaded.shape.d if d is None else d
        results = given.errors(loaded.on(device).double(), pairs)
        if json is not None:
            write_json(json, results | {"model": model, "d": pairs, **provenance()})
        about = ", ".join(f"{key} {value}" for key, value in results["data"].items())
        Console().print(table(results, f"{escape(model)}, d = {pairs} ({escape(about)})"))

    return evaluate


def table(results: dict[str, Any], title: str) -> Table:
    systems = results["systems"]
    output = Table("system", title=title)
    for key in next(iter(systems.values())):
        output.add_column(HEADINGS.get(key) or key.replace("_", " "), justify="right")
    for name, errors in systems.items():
        output.add_row(name, *("-" if value is None else f"{value:.2%}" for value in errors.values()))
    return output
