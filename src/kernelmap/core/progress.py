"""Progress and notices on standard error, so that results on standard output can be piped.

Whoever works says how far it is, by `part` and `tracked`; whoever called it may listen. Nobody has to.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from operator import length_hint
from typing import NamedTuple, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from kernelmap.core.terminal import shown

console = Console(stderr=True, emoji=False)

T = TypeVar("T")
Listener = Callable[[str, float], None]
"""Hears what is being done, and which fraction of all is done."""

FIRST, EVERY = 1.0, 10.0
"""Seconds until the first line where there is no terminal, and between lines."""


class _Part(NamedTuple):
    """The work from fraction `low` to `high` of all."""

    listener: Listener
    doing: str = ""
    low: float = 0.0
    high: float = 1.0

    def tell(self, fraction: float) -> None:
        self.listener(self.doing, self.low + fraction * (self.high - self.low))


_current: ContextVar[_Part | None] = ContextVar("part", default=None)


@contextmanager
def _inside(inner: _Part) -> Iterator[None]:
    token = _current.set(inner)
    try:
        yield
    finally:
        _current.reset(token)


def listening(listener: Listener) -> AbstractContextManager[None]:
    """Work inside tells the listener how far it is; what is done twice does not go back."""
    furthest, last = 0.0, "Working"

    def forwards(doing: str, done: float) -> None:
        nonlocal furthest, last
        furthest, last = max(furthest, done), doing or last
        listener(last, furthest)

    return _inside(_Part(forwards))


@contextmanager
def part(doing: str, low: float, high: float) -> Iterator[None]:
    """What is done inside is the part from `low` to `high` of the work around it."""
    if (outer := _current.get()) is None:
        yield
        return
    size = outer.high - outer.low
    inner = _Part(outer.listener, doing or outer.doing, outer.low + low * size, outer.low + high * size)
    inner.tell(0.0)
    with _inside(inner):
        yield


def tracked(items: Iterable[T], total: int | None = None) -> Iterator[T]:
    """Items that are worked on one after the other, each an equal part of the work; `total` where they have no len."""
    count = max(length_hint(items) if total is None else total, 1)
    for number, item in enumerate(items):
        with part("", min(number / count, 1.0), min((number + 1) / count, 1.0)):
            yield item


@contextmanager
def working(doing: str) -> Iterator[None]:
    """A bar with the time left on a terminal; elsewhere a line now and then, once it takes longer than a second."""
    with (_bar if console.is_terminal else lines)(doing) as listener, listening(listener):
        yield


class _Left(ProgressColumn):
    """What is left, if it goes on as until now: it grows while a long step takes its time."""

    def render(self, task: Task) -> Text:
        return Text(f"about {left(task.elapsed or 0.0, task.completed):.0f} s left" if task.completed else "")


def left(seconds: float, done: float) -> float:
    """Of what took so long for a fraction."""
    return seconds / done - seconds


@contextmanager
def _bar(doing: str) -> Iterator[Listener]:
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), _Left()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(shown(doing), total=1.0)
        yield lambda doing, done: bar.update(task, completed=done, description=shown(doing))


@contextmanager
def lines(doing: str) -> Iterator[Listener]:
    from threading import Timer

    start, said, state = time.monotonic(), [0.0], [doing, 0.0]

    def say() -> None:
        seconds = time.monotonic() - start
        rest = f", about {left(seconds, state[1]):.0f} s left" if state[1] and seconds > 5 else ""
        said[0] = time.monotonic()
        console.print(f"{shown(state[0])}: {state[1]:.0%}{rest}", markup=False, highlight=False, soft_wrap=True)

    def listener(doing: str, done: float) -> None:
        another, state[:] = doing != state[0], (doing, done)
        late = time.monotonic() - (said[0] or start)
        if said[0] and (late > EVERY or (another and late > 1)):
            say()

    timer = Timer(FIRST, say)
    timer.daemon = True
    timer.start()
    try:
        yield listener
    finally:
        timer.cancel()


def progress(items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """Items one after the other, under one name; what is tracked inside is a part of it."""
    if _current.get() is not None:
        yield from tracked(items, total)
        return
    shown_as = _bar if console.is_terminal else lines
    with shown_as(description) as listener, listening(lambda _, done: listener(description, done)):
        yield from tracked(items, total)


def notice(sentence: str) -> None:
    """Something that a user should know while a command goes on."""
    console.print(f"note: {shown(sentence)}", markup=False, highlight=False, soft_wrap=True)
