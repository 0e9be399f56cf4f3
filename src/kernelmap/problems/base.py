"""What a problem declares: its options, its training and test systems, and the errors that maps are judged by."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import h5py

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.files import atomic_path, entry, locked, open_hdf5
from kernelmap.core.systems import SystemSet
from kernelmap.evaluation import evaluate
from kernelmap.maps import KernelMap


@dataclass(frozen=True)
class TrainingData:
    """Systems to train on, on one grid or as contexts each on its own; the limit on contexts of each; what they are."""

    systems: SystemSet | Sequence[Context]
    draws: int | None = None
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TestData:
    """Systems that no model has seen, and further pairs of the same systems to be predicted, where there are such."""

    __test__: ClassVar[bool] = False

    systems: SystemSet
    heldout: SystemSet | None = None


class Writer(Protocol):
    """Writes a problem's data to a file and says in a sentence what it holds; its fields are the options."""

    def generate(self, out: Path) -> str: ...


class Problem(ABC):
    """A family of systems. Subclasses are frozen dataclasses, whose fields are the options on the command line.

    Attributes:
        name: in the registry.
        d: pairs in a context, unless the user says otherwise.
        Generator: whose fields are the options of `kernelmap generate`; the problem itself by default.
    """

    name: str = ""
    d: ClassVar[int]
    Generator: ClassVar[type[Writer] | None] = None

    @abstractmethod
    def training(self) -> TrainingData: ...

    @abstractmethod
    def test(self) -> TestData: ...

    def errors(self, model: KernelMap, d: int) -> dict[str, Any]:
        """The model's size, its errors under `systems`, and under `data` what they were measured on."""
        data = self.test()
        return evaluate(model, data.systems, d, data.heldout) | {"data": data.systems.about}

    def generate(self, out: Path) -> str:
        with locked(out):
            train, test = self.training().systems, self.test()
            if not isinstance(train, SystemSet):
                raise InputError(
                    f"the systems of {self.name} have grids of their own and are drawn anew by every command."
                )
            parts = {"train": train, "test": test.systems} | ({} if test.heldout is None else {"heldout": test.heldout})
            write_parts(out, self.name, parts)
        counts = f"{len(train.names)} training systems ({train.pairs} pairs each)"
        return f"{counts}, {len(test.systems.names)} test systems in {out}"


def write_parts(path: Path | str, problem: str, parts: Mapping[str, SystemSet], **attributes: Any) -> None:
    """Sets of systems as the groups of one HDF5 file."""
    room = sum(systems.nbytes for systems in parts.values())
    with atomic_path(path, room=room) as temporary, h5py.File(temporary, "w") as file:
        file.attrs.update({"kernelmap": problem, **attributes})
        for name, systems in parts.items():
            systems.write(file.create_group(name))


def read_part(path: Path | str, name: str) -> SystemSet:
    """One set of systems of a file that `write_parts` wrote."""
    with open_hdf5(path) as file:
        group = entry(file, name)
        if not isinstance(group, h5py.Group):
            raise InputError(f"{path}: {name} should be a group that holds systems.")
        return SystemSet.read(group)
