"""A row of one of the paper's tables: what is trained or estimated, how, and what the paper prints for it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from kernelmap.errors import InputError
from kernelmap.maps import KernelMap, MapName, MapOptions
from kernelmap.systems import SystemSet
from kernelmap.training.recipe import Recipe

LABELS = {
    "nao": "NAO",
    "discrete-nao": "Discrete-NAO",
    "softmax-nao": "Softmax-NAO",
    "nao-u": "NAO-u",
    "afno": "AFNO",
    "autoencoder": "Autoencoder",
    "posterior": "posterior (ours)",
    "dartr": "DARTR",
    "linear": "best linear operator",
}


@dataclass(frozen=True)
class Printed:
    """The paper's figures, in percent, as far as it prints them: of each test system."""

    parameters: int
    operator: tuple[float, ...]
    kernel: tuple[float, ...] = ()


@dataclass(frozen=True)
class Training:
    """What a row is trained on: systems, the limit on contexts of each, and what they are."""

    systems: SystemSet
    draws: int | None
    about: dict[str, Any]


@dataclass(frozen=True)
class Row(ABC):
    """One model on one setting of a problem; subclasses know the problem.

    Attributes:
        map: a kernel map to train, the shipped posterior map, the classical estimator DARTR, or the best linear
            operator of every system by itself.
        epochs, batch: of the training.
        optimizer: of the training, which sets its learning rate too.
        shortened: made with other epochs than declared.
    """

    map: MapName | Literal["dartr", "linear"]
    d: int = 302
    dk: int = 10
    epochs: int = 1000
    batch: int = 7
    optimizer: Literal["adam", "muon"] = "muon"
    printed: Printed | None = None
    shortened: bool = False

    @property
    @abstractmethod
    def setting_name(self) -> list[str]:
        """What tells this row from others of the same map, d and dk."""

    @abstractmethod
    def training(self) -> Training: ...

    @abstractmethod
    def measure(self, model: KernelMap | None) -> dict[str, Any]:
        """Size and errors of the row's model, or of an estimator without one."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What a table calls this row."""

    @property
    @abstractmethod
    def shipped(self) -> str:
        """The posterior map of the problem."""

    @property
    def name(self) -> str:
        """Such as nao-302-10 or nao-302-20-diverse: of one training run, wherever it is printed."""
        parts = [self.map.removesuffix("-nao"), str(self.d), *[str(self.dk)] * self.trained, *self.setting_name]
        return "-".join(parts + [f"{self.epochs}-epochs"] * self.shortened)

    @property
    def trained(self) -> bool:
        """Whether this row has a model of its own."""
        return self.map not in ("dartr", "linear", "posterior")

    @property
    def options(self) -> MapOptions:
        return MapOptions(dk=self.dk)

    @property
    def recipe(self) -> Recipe:
        return Recipe(
            epochs=self.epochs,
            batch=self.batch,
            lr=6e-3 if self.optimizer == "muon" else 3e-3,
            schedule="one-cycle",
            optimizer=self.optimizer,
            every=min(20, self.epochs),
        )

    def with_epochs(self, epochs: int) -> "Row":
        return replace(self, epochs=epochs, shortened=True) if self.trained and epochs != self.epochs else self


@dataclass(frozen=True)
class Block:
    """Rows that stand together under one heading."""

    heading: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper: its blocks, and the test systems it has columns for."""

    title: str
    systems: tuple[str, ...]
    blocks: tuple[Block, ...]

    @property
    def rows(self) -> dict[str, Row]:
        return {row.name: row for block in self.blocks for row in block.rows}

    def select(self, names: tuple[str, ...]) -> "PaperTable":
        """With these rows only; with all, if none is named."""
        unknown = sorted(set(names) - set(self.rows))
        if unknown:
            raise InputError(f"there is no row {', '.join(unknown)}; there are {', '.join(self.rows)}.")
        return self._each(lambda row: row if not names or row.name in names else None)

    def with_epochs(self, epochs: int) -> "PaperTable":
        return self._each(lambda row: row.with_epochs(epochs))

    def _each(self, change: Callable[[Row], Row | None]) -> "PaperTable":
        blocks = [
            replace(block, rows=tuple(new for row in block.rows if (new := change(row)) is not None))
            for block in self.blocks
        ]
        return replace(self, blocks=tuple(block for block in blocks if block.rows))
