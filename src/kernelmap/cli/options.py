"""Options that several commands share, and how a command becomes one for a problem."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, TypeVar

import torch
import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kernelmap.core.errors import InputError
from kernelmap.core.files.limits import check_count
from kernelmap.core.registry import Registry

T = TypeVar("T", bound=type)

Flat = tyro.conf.arg(name="")
"""Options of a group without the group's name before them."""

JsonFile = Annotated[Path | None, tyro.conf.arg(name="json", metavar="FILE")]


def choose(command: str, before: str, registry: Registry[T], words: Sequence[str]) -> T:
    """The class that the first word names; without one, what there is."""
    usage = f"usage: kernelmap {command} {before}{registry.noun.upper()} ..."
    if words and words[0] not in ("--help", "-h"):
        return registry[words[0]]
    if not words:
        raise InputError(f"{usage} needs a {registry.noun}; there are {', '.join(registry.names)}.")
    table = Table(box=None, show_header=False, pad_edge=False)
    for name in registry.names:
        table.add_row(f"  {name}", escape((registry[name].__doc__ or "").partition("\n")[0]))
    console = Console()
    console.print(usage, markup=False)
    console.print(table)
    console.print(f"\n`kernelmap {command} {before}NAME --help` lists the options.", markup=False)
    raise SystemExit(0)


def check_distinct(*groups: type) -> None:
    """Options of several groups stand side by side: no two may have one name."""
    owners: dict[str, type] = {}
    for group in groups:
        for field in fields(group):
            other = owners.setdefault(field.name, group)
            if other is not group:
                both = f"{other.__name__} and {group.__name__}"
                raise InputError(f"{both} both have an option {field.name!r}; rename it in one of them.")


def option(words: Sequence[str], name: str) -> str | None:
    """The value of `--name value` or `--name=value`, where it is given."""
    for word, after in zip(words, [*words[1:], None], strict=False):
        if word == name:
            return after
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None


def check_hdf5_name(out: Path) -> None:
    if out.suffix not in (".h5", ".hdf5"):
        raise InputError(f"--out must name an HDF5 file (.h5), got {out}.")


def use_threads(threads: int | None) -> None:
    if threads is not None:
        check_count(threads, "--threads")
        torch.set_num_threads(threads)
