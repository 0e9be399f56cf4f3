"""Things that are known by name: those of this package and, by entry points, those of other people's."""

import warnings
from collections.abc import Callable
from importlib.metadata import entry_points
from threading import RLock
from typing import Any, Generic, TypeVar, cast

from kernelmap.core.errors import InputError

T = TypeVar("T")
C = TypeVar("C")


class Registry(Generic[T]):
    """Classes by name. A class joins by the decorator `register(name)`, which also sets its attribute `name`.

    `group` is a group of entry points. Each of them names a module, or a class in it, whose import registers classes;
    they are imported when a name is first asked for. This package declares its own ones in the same way.
    """

    def __init__(self, group: str, noun: str) -> None:
        self.group, self.noun = group, noun
        self._classes: dict[str, T] = {}
        self._loaded = False
        self._loading = RLock()

    def register(self, name: str) -> Callable[[C], C]:
        """A class decorator."""

        def add(cls: C) -> C:
            other: Any = self._classes.setdefault(name, cast(T, cls))
            if other is not cls:
                raise InputError(f"there are two {self.noun}s named {name!r}: {other} and {cls}; rename one of them.")
            setattr(cls, "name", name)  # noqa: B010
            return cls

        return add

    def __getitem__(self, name: str) -> T:
        self._load()
        if name not in self._classes:
            raise InputError(f"there is no {self.noun} named {name!r}; there are {', '.join(self.names)}.")
        return self._classes[name]

    @property
    def names(self) -> list[str]:
        self._load()
        return sorted(self._classes)

    def _load(self) -> None:
        # Another thread waits here until all are imported; the same one may ask again while it imports.
        with self._loading:
            if not self._loaded:
                self._loaded = True
                try:
                    for entry in entry_points(group=self.group):
                        self._import(entry)
                except BaseException:
                    self._loaded = False
                    raise

    # Any: where the backport importlib_metadata is imported, entry points are of its class, not of the standard one.
    def _import(self, entry: Any) -> None:
        try:
            entry.load()
        except Exception as error:
            if entry.value.startswith("kernelmap."):
                raise
            warnings.warn(
                f"the {self.noun}s of {entry.value} cannot be used ({type(error).__name__}: {error}); "
                "mend or uninstall the package that brings them.",
                stacklevel=4,
            )
