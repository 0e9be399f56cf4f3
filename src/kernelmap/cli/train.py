"""`kernelmap train`: train a map on a problem."""

from pathlib import Path
from typing import Annotated

from rich import print
from rich.markup import escape

from kernelmap.cli.options import Flat, Problem, use_threads
from kernelmap.errors import InputError
from kernelmap.maps import MapName, MapOptions, PosteriorOptions
from kernelmap.problems.radial import Setting, Variant, radial
from kernelmap.provenance import provenance
from kernelmap.training.loop import Machine
from kernelmap.training.loop import train as run
from kernelmap.training.recipe import Recipe


def train(
    problem: Problem,
    out: Path,
    map: MapName = "nao",
    d: int = 302,
    setting: Setting = "diverse",
    variant: Variant = "released",
    dx: float = 0.0125,
    resume: bool = False,
    threads: int | None = None,
    options: Annotated[MapOptions, Flat] = MapOptions(),  # noqa: B008
    recipe: Annotated[Recipe, Flat] = Recipe(),  # noqa: B008
    machine: Annotated[Machine, Flat] = Machine(),  # noqa: B008
) -> None:
    """Train a kernel map on pairs alone; the checkpoint with the lowest validation loss is kept.

    Args:
        problem: radial: nonlocal diffusion with a radial kernel.
        out: directory for the model, its log and its state.
        map: the kernel map to train.
        d: pairs in a context.
        setting: sine (7 kernels), diverse (21), single (1 kernel, 14 inputs) or fewer (21 kernels, 5 contexts each).
        variant: as the paper's text says, or as the authors' released data are.
        dx: mesh width of locations and radii; 0.0125 or 0.025.
        resume: go on where a killed run stopped, to the same weights bit for bit.
        threads: CPU threads; all by default.
    """
    use_threads(threads)
    if map == "posterior" and options != MapOptions():
        raise InputError("the posterior map takes no dk, layers, heads or normaliser; leave them out.")
    data = radial(setting, variant, dx)
    about = {"problem": problem, "setting": setting, "variant": variant, "dx": dx, **provenance()}
    progress = run(
        map,
        PosteriorOptions() if map == "posterior" else options,
        data.train,
        d,
        recipe,
        out,
        about=about,
        draws=data.draws,
        resume=resume,
        machine=machine,
    )
    print(
        f"{progress.epoch} epochs in {progress.seconds:.0f} s; lowest validation loss {progress.best_loss:.4f} "
        f"after epoch {progress.best_epoch}; model in {escape(str(out))}"
    )
