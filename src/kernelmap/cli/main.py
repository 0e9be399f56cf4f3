"""The `kernelmap` command."""

import sys

import tyro
from rich.markup import escape

from kernelmap.cli.bench import bench
from kernelmap.cli.check import check
from kernelmap.cli.demo import demo
from kernelmap.cli.discover import discover
from kernelmap.cli.evaluate import evaluate
from kernelmap.cli.generate import generate
from kernelmap.cli.import_released import import_released
from kernelmap.cli.models import models
from kernelmap.cli.reproduce import reproduce
from kernelmap.cli.train import train
from kernelmap.errors import InputError
from kernelmap.progress import console

COMMANDS = {
    "demo": demo,
    "check": check,
    "discover": discover,
    "generate": generate,
    "train": train,
    "evaluate": evaluate,
    "reproduce": reproduce,
    "import-released": import_released,
    "bench": bench,
    "models": models,
}


def main() -> None:
    """Run a command; a mistake in its input ends with one clear sentence and exit code 2."""
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="kernelmap",
            description="From a few measured pairs (u, f) of a system to its hidden kernel.",
        )
    except InputError as error:
        console.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
