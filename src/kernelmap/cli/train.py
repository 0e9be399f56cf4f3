"""`kernelmap train`: train a map on a problem."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from rich import print
from rich.markup import escape
from tyro.conf import subcommand

from kernelmap.cli.options import Flat, use_threads
from kernelmap.errors import InputError
from kernelmap.maps import MAPS, MapName, MapOptions
from kernelmap.problems.darcy import Task, darcy
from kernelmap.problems.mechanics import Split, mechanics
from kernelmap.problems.radial import Setting, Variant, radial
from kernelmap.provenance import provenance
from kernelmap.systems import SystemSet
from kernelmap.training.loop import Machine
from kernelmap.training.loop import train as run
from kernelmap.training.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class Training:
    """What the training of a map on any problem takes.

    Attributes:
        out: directory for the model, its log and its state.
        map: the kernel map to train.
        d: pairs in a context.
        resume: go on where a killed run stopped, to the same weights bit for bit.
        threads: CPU threads; all by default.
    """

    out: Path
    map: MapName = "nao"
    d: int
    resume: bool = False
    threads: int | None = None
    options: Annotated[MapOptions, Flat] = field(default_factory=MapOptions)
    recipe: Annotated[Recipe, Flat] = field(default_factory=Recipe)
    machine: Annotated[Machine, Flat] = field(default_factory=Machine)

    def data(self) -> tuple[SystemSet, dict[str, Any], int | None]:
        """Training systems, what they are, and the limit on contexts per system."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Radial(Training):
    """Nonlocal diffusion with a radial kernel.

    Attributes:
        setting: sine (7 kernels), diverse (21), single (1 kernel, 14 inputs) or fewer (21 kernels, 5 contexts each).
        variant: as the paper's text says, or as the authors' released data are.
        dx: mesh width of locations and radii; 0.0125 or 0.025.
    """

    d: int = 302
    setting: Setting = "diverse"
    variant: Variant = "released"
    dx: float = 0.0125

    def data(self) -> tuple[SystemSet, dict[str, Any], int | None]:
        found = radial(self.setting, self.variant, self.dx)
        about = {"problem": "radial", "setting": self.setting, "variant": self.variant, "dx": self.dx}
        return found.train, about, found.draws


@dataclass(frozen=True, kw_only=True)
class Darcy(Training):
    """Flow through a porous medium.

    Attributes:
        task: g-to-p (the kernel is the Green's function), p-to-g (the stiffness) or b-to-p (not linear).
        n: nodes in each direction.
        own_sources: give every system sources of its own; shared by all, as in the paper, by default.
    """

    task: Task
    d: int = 50
    n: int = 21
    own_sources: bool = False

    def data(self) -> tuple[SystemSet, dict[str, Any], int | None]:
        train = darcy(self.task, self.n, own_sources=self.own_sources, truth=False).train
        return train, train.about, None


@dataclass(frozen=True, kw_only=True)
class Mechanics(Training):
    """Hyperelastic specimens under body forces.

    Attributes:
        data_file: written by `kernelmap generate mechanics`.
        split: id (all digits in training) or ood (nines for testing only).
    """

    data_file: Path
    split: Split = "id"
    d: int = 100

    def data(self) -> tuple[SystemSet, dict[str, Any], int | None]:
        train = mechanics(self.data_file, self.split).train
        return train, train.about | {"split": self.split}, None


def train(
    problem: Annotated[
        Annotated[Radial, subcommand("radial", prefix_name=False)]
        | Annotated[Darcy, subcommand("darcy", prefix_name=False)]
        | Annotated[Mechanics, subcommand("mechanics", prefix_name=False)],
        Flat,
    ],
) -> None:
    """Train a kernel map on pairs alone; the checkpoint with the lowest validation loss is kept."""
    use_threads(problem.threads)
    kind = MAPS[problem.map].Options
    if kind is not MapOptions and problem.options != MapOptions():
        raise InputError(f"the {problem.map} map takes no dk, layers, heads or normaliser; leave them out.")
    systems, about, draws = problem.data()
    progress = run(
        problem.map,
        problem.options if kind is MapOptions else kind(),
        systems,
        problem.d,
        problem.recipe,
        problem.out,
        about=about | provenance(),
        draws=draws,
        resume=problem.resume,
        machine=problem.machine,
    )
    print(
        f"{progress.epoch} epochs in {progress.seconds:.0f} s; lowest validation loss {progress.best_loss:.4f} "
        f"after epoch {progress.best_epoch}; model in {escape(str(problem.out))}"
    )
