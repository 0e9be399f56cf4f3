"""`kernelmap completion`: the script with which a shell completes commands and their options."""

from collections.abc import Callable
from typing import Annotated, Literal

import tyro

from kernelmap.cli.main import COMMANDS, module_of


def run(words: list[str]) -> None:
    tyro.cli(completion, prog="kernelmap completion", args=words)


def completion(shell: Annotated[Literal["bash", "zsh"], tyro.conf.Positional]) -> None:
    """Print the script for a shell. Of commands on problems (generate, train, evaluate) it knows the names alone.

    Args:
        shell: bash or zsh.
    """
    commands = {name: _function(name) for name in COMMANDS}
    tyro.extras.subcommand_cli_from_dict(commands, prog="kernelmap", args=["--tyro-print-completion", shell])


def _function(name: str) -> Callable[..., None]:
    return getattr(module_of(name), name.replace("-", "_"), _unknown)


def _unknown() -> None:
    """A command whose options depend on its first words."""
