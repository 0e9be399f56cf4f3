"""`kernelmap evaluate`: errors of a model on a problem's test systems."""

from dataclasses import dataclass
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from tyro.conf import subcommand

from kernelmap.cli.options import Flat, JsonFile
from kernelmap.evaluation import evaluate as errors_of
from kernelmap.files import write_json
from kernelmap.maps import KernelMap
from kernelmap.model import load_model
from kernelmap.problems.darcy import Task, darcy
from kernelmap.problems.radial import Variant, radial
from kernelmap.provenance import provenance
from kernelmap.reproduce.darcy import errors_on_darcy


@dataclass(frozen=True)
class Radial:
    """Nonlocal diffusion with a radial kernel: three test systems.

    Attributes:
        d: pairs in a context; the model's own by default.
        variant: as the paper's text says, or as the authors' released data are.
        dx: mesh width of locations and radii; 0.0125 or 0.025.
        noise: standard deviation of noise on f, relative to the root mean square of f.
        seed: of the noise.
        json: write the errors, as fractions, to this file.
    """

    d: int | None = None
    variant: Variant = "released"
    dx: float = 0.0125
    noise: float = 0.0
    seed: int = 0
    json: JsonFile = None

    def errors(self, model: KernelMap, d: int) -> dict[str, Any]:
        test = radial("sine", self.variant, self.dx).test
        if self.noise:
            test = test.with_noise(self.noise, self.seed)
        return errors_of(model, test, d) | {"data": test.about}


@dataclass(frozen=True)
class Darcy:
    """Flow through a porous medium: ten test systems, of which the mean errors are given.

    Attributes:
        task: g-to-p (the kernel is the Green's function), p-to-g (the stiffness) or b-to-p (not linear).
        d: pairs in a context; the model's own by default.
        n: nodes in each direction.
        json: write the errors, as fractions, to this file.
    """

    task: Task
    d: int | None = None
    n: int = 21
    json: JsonFile = None

    def errors(self, model: KernelMap, d: int) -> dict[str, Any]:
        data = darcy(self.task, self.n)
        return errors_on_darcy(model, data, d) | {"data": data.test.about}


def evaluate(
    model: Annotated[str, tyro.conf.Positional],
    problem: Annotated[
        Annotated[Radial, subcommand("radial", prefix_name=False)]
        | Annotated[Darcy, subcommand("darcy", prefix_name=False)],
        Flat,
    ],
) -> None:
    """Errors of a model on systems it has never seen: operator error on context and held-out pairs, kernel error.

    Args:
        model: a shipped model's name (see `kernelmap models`) or a model's directory.
    """
    loaded, _ = load_model(model)
    pairs = loaded.shape.d if problem.d is None else problem.d
    results = problem.errors(loaded.double(), pairs)
    if problem.json is not None:
        write_json(problem.json, results | {"model": model, "d": pairs, **provenance()})
    about = ", ".join(f"{key} {value}" for key, value in results["data"].items())
    Console().print(table(results, f"{escape(model)}, d = {pairs} ({escape(about)})"))


HEADINGS = {
    "operator_error_context": "operator error\ncontext",
    "operator_error_heldout": "operator error\nheld out",
    "kernel_error": "kernel error",
    "kernel_error_pooled": "kernel error\npooled",
    "coverage95": "coverage\nof 95 % band",
    "microstructure_accuracy": "phases found",
    "far_mass": "mass beyond\ntwo steps",
}


def table(results: dict[str, Any], title: str) -> Table:
    systems = results["systems"]
    output = Table("system", title=title)
    for key in next(iter(systems.values())):
        output.add_column(HEADINGS[key], justify="right")
    for name, errors in systems.items():
        output.add_row(name, *("-" if value is None else f"{value:.2%}" for value in errors.values()))
    return output
