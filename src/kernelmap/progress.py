"""Progress bars on standard error, so that results on standard output can be piped."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import track

console = Console(stderr=True)


T = TypeVar("T")


def progress(items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    yield from track(items, description, total=total, console=console, transient=True, disable=not console.is_terminal)
