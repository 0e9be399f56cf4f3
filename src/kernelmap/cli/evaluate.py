"""`kernelmap evaluate`: errors of a model on a problem's test systems."""

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kernelmap.cli.options import JsonFile
from kernelmap.errors import InputError
from kernelmap.evaluation import evaluate as errors_of
from kernelmap.files import write_json
from kernelmap.maps import KernelMap
from kernelmap.model import load_model
from kernelmap.problems.darcy import Task, darcy
from kernelmap.problems.mechanics import Split
from kernelmap.problems.radial import Variant, radial
from kernelmap.provenance import provenance
from kernelmap.reproduce.darcy import errors_on_darcy
from kernelmap.reproduce.mechanics import errors_on_mechanics, solved, specimens_of


@dataclass(frozen=True)
class Radial:
    """Three test systems of nonlocal diffusion."""

    variant: Variant = "released"
    dx: float = 0.0125
    noise: float = 0.0
    seed: int = 0

    def errors(self, model: KernelMap, d: int) -> dict[str, Any]:
        test = radial("sine", self.variant, self.dx).test
        if self.noise:
            test = test.with_noise(self.noise, self.seed)
        return errors_of(model, test, d) | {"data": test.about}


@dataclass(frozen=True)
class Darcy:
    """Ten test systems of flow through a porous medium, of which the mean errors are given."""

    task: Task = "g-to-p"
    n: int = 21

    def errors(self, model: KernelMap, d: int) -> dict[str, Any]:
        data = darcy(self.task, self.n)
        return errors_on_darcy(model, data, d) | {"data": data.test.about}


@dataclass(frozen=True)
class Mechanics:
    """Test specimens of a hyperelastic material, solved anew, of which the mean errors are given."""

    split: Split = "id"
    specimens: int = 5

    def errors(self, model: KernelMap, d: int) -> dict[str, Any]:
        test, held_out = solved(specimens_of(self.split, self.specimens))
        about = test.about | {"split": self.split, "specimens": self.specimens}
        return errors_on_mechanics(model, test, held_out, d) | {"data": about}


PROBLEMS = {"radial": Radial, "darcy": Darcy, "mechanics": Mechanics}


def evaluate(
    model: Annotated[str, tyro.conf.Positional],
    problem: Annotated[Literal["radial", "darcy", "mechanics"], tyro.conf.Positional],
    d: int | None = None,
    variant: Variant | None = None,
    dx: float | None = None,
    noise: float | None = None,
    seed: int | None = None,
    task: Task | None = None,
    n: int | None = None,
    split: Split | None = None,
    specimens: int | None = None,
    json: JsonFile = None,
) -> None:
    """Errors of a model on systems it has never seen: operator error on context and held-out pairs, kernel error.

    Args:
        model: a shipped model's name (see `kernelmap models`) or a model's directory.
        problem: radial: nonlocal diffusion with a radial kernel. darcy: flow through a porous medium. mechanics:
            hyperelastic specimens under body forces.
        d: pairs in a context; the model's own by default.
        variant: of radial: as the paper's text says, or as the authors' released data are (default).
        dx: of radial: mesh width of locations and radii; 0.0125 (default) or 0.025.
        noise: of radial: standard deviation of noise on f, relative to the root mean square of f.
        seed: of the noise.
        task: of darcy: g-to-p (default; the kernel is the Green's function), p-to-g (the stiffness) or b-to-p.
        n: of darcy: nodes in each direction; 21 by default.
        split: of mechanics: test specimens of all digits (id, default), or nines (ood).
        specimens: of mechanics: how many of the split's test specimens to solve; 5 by default.
        json: write the errors, as fractions, to this file.
    """
    named = {"variant": variant, "dx": dx, "noise": noise, "seed": seed, "task": task, "n": n}
    named |= {"split": split, "specimens": specimens}
    given = {name: value for name, value in named.items() if value is not None}
    taken = {field.name for field in fields(PROBLEMS[problem])}
    if not given.keys() <= taken:
        raise InputError(f"{problem} takes no --{', --'.join(sorted(given.keys() - taken))}; leave it out.")
    loaded, _ = load_model(model)
    pairs = loaded.shape.d if d is None else d
    results = PROBLEMS[problem](**given).errors(loaded.double(), pairs)
    if json is not None:
        write_json(json, results | {"model": model, "d": pairs, **provenance()})
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
