"""`kernelmap generate`: write a problem's data to a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import tyro

from kernelmap.cli.options import Flat, check_hdf5_name, choose
from kernelmap.core.terminal import say
from kernelmap.problems import PROBLEMS, Problem


def run(words: list[str]) -> None:
    problem = choose("generate", "", PROBLEMS, words)
    tyro.cli(command(problem), prog=f"kernelmap generate {problem.name}", args=words[1:])


def command(problem: type[Problem]) -> Callable[..., None]:
    """The command for a problem."""
    generator = problem.Generator or problem

    def generate(
        *,
        out: Path,
        given: Annotated[generator, Flat],  # pyright: ignore[reportInvalidTypeForm]
    ) -> None:
        """Write training and test systems, with their true kernels where there are such.

        Args:
            out: the HDF5 file to write.
        """
        check_hdf5_name(out)
        say(given.generate(out))

    return generate
