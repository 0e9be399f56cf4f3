"""Progress bars and notices on standard error, so that results on standard output can be piped."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import track

from kernelmap.core.terminal import shown

console = Console(stderr=True, emoji=False)


T = TypeVar("T")


def progress(items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    yield from track(items, description, total=total, console=console, transient=True, disable=not console.is_terminal)


def notice(sentence: str) -> None:
    """Something that a user should know while a command goes on."""
    console.print(f"note: {shown(sentence)}", markup=False, highlight=False, soft_wrap=True)
