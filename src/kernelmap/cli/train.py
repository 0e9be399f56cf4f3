"""`kernelmap train`: train a map on a problem. Options are those of the problem, of the map and of the recipe."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import tyro

from kernelmap.cli.options import Flat, check_distinct, choose, option, use_threads
from kernelmap.core.provenance import provenance
from kernelmap.core.terminal import say
from kernelmap.maps import MAPS, KernelMap
from kernelmap.problems import PROBLEMS, Problem
from kernelmap.training import Machine, Recipe
from kernelmap.training import train as run_training

DEFAULT = "nao"


def run(words: list[str]) -> None:
    problem = choose("train", "", PROBLEMS, words)
    kind = MAPS[option(words, "--map") or DEFAULT]
    check_distinct(problem, kind.Options, Recipe, Machine)
    tyro.cli(command(problem, kind), prog=f"kernelmap train {problem.name}", args=words[1:])


def command(problem: type[Problem], kind: type[KernelMap]) -> Callable[..., None]:
    """The command for a problem and a map."""

    def train(
        *,
        out: Path,
        map: Annotated[str, tyro.conf.arg(metavar="|".join(MAPS.names))] = kind.name,
        d: int = problem.d,
        given: Annotated[problem, Flat],  # pyright: ignore[reportInvalidTypeForm]
        options: Annotated[kind.Options, Flat],  # pyright: ignore[reportInvalidTypeForm]
        recipe: Annotated[Recipe, Flat] = Recipe(),  # noqa: B008
        machine: Annotated[Machine, Flat] = Machine(),  # noqa: B008
        resume: bool = False,
        overwrite: bool = False,
        threads: int | None = None,
    ) -> None:
        """Train a kernel map on pairs alone; the checkpoint with the lowest validation loss is kept.

        Args:
            out: directory for the model, its log and its state.
            map: the kernel map to train; its options are among those below.
            d: pairs in a context.
            resume: go on where a killed run stopped, to the same weights bit for bit.
            overwrite: begin anew where --out holds a model or a run already.
            threads: CPU threads; all by default.
        """
        use_threads(threads)
        data = given.training()
        progress = run_training(
            map,
            options,
            data.systems,
            d,
            recipe,
            out,
            about=data.about | provenance(),
            draws=data.draws,
            resume=resume,
            overwrite=overwrite,
            machine=machine,
        )
        if kind.Loss is None:
            say(f"fitted in {progress.seconds:.0f} s; model in {out}")
            return
        say(
            f"{progress.epoch} epochs in {progress.seconds:.0f} s; lowest validation loss {progress.best_loss:.4f} "
            f"after epoch {progress.best_epoch}; model in {out}"
        )

    return train
