"""A row of one of the paper's tables: what is trained or estimated, how, and what the paper prints for it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from kernelmap.core.errors import InputError
from kernelmap.maps import MAPS, KernelMap, NAOOptions
from kernelmap.maps.nao import Mixer
from kernelmap.problems import TrainingData
from kernelmap.training import Recipe

LABELS = {
    "nao": "NAO",
    "discrete-nao": "Discrete-NAO",
    "softmax-nao": "Softmax-NAO",
    "nao-u": "NAO-u",
    "afno": "AFNO",
    "autoencoder": "Autoencoder",
    "set-nao": "order-free NAO (ours)",
    "integral-posterior": "its exact limit (ours)",
    "posterior": "posterior (ours)",
    "dartr": "DARTR",
    "linear": "best linear operator",
}

MIXER_LABELS: dict[Mixer, str] = {"spectral": "NAO, W pointwise + spectral", "convolution": "NIPS, W a convolution"}

UNTRAINED = {"posterior", "dartr", "linear"}
"""Rows without a model of their own: the shipped probabilistic map of the problem, and estimators."""

ORDER_FREE = {"set-nao", "integral-posterior"}
"""Maps for which one training run, of pairs drawn at random, serves all numbers of pairs."""


@dataclass(frozen=True)
class Printed:
    """The paper's figures, in percent, as far as it prints them: of each test system."""

    parameters: int
    operator: tuple[float, ...]
    kernel: tuple[float, ...] = ()


@dataclass(frozen=True)
class Row(ABC):
    """One model on one setting of a problem; subclasses know the problem.

    Attributes:
        map: a kernel map to train, the shipped posterior map, the classical estimator DARTR, or the best linear
            operator of every system by itself.
        epochs, batch: of the training.
        optimizer: of the training, which sets its learning rate too.
        mixer: form of W of a NAO; networks are what the paper prints.
        shortened: made with other epochs than declared.
    """

    map: str
    d: int = 302
    dk: int = 10
    epochs: int = 1000
    batch: int = 7
    optimizer: Literal["adam", "muon"] = "muon"
    printed: Printed | None = None
    shortened: bool = False
    mixer: Mixer = "network"

    @property
    @abstractmethod
    def setting_name(self) -> list[str]:
        """What distinguishes this row from others of the same map, d and dk."""

    @abstractmethod
    def training(self) -> TrainingData: ...

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
        dk = [str(self.dk)] * (self.trained and self.map not in ORDER_FREE)
        mixer = [self.mixer] * (self.mixer != type(self).mixer)
        return self._named([self.map.removesuffix("-nao"), str(self.d), *dk, *self.setting_name, *mixer])

    @property
    def run_name(self) -> str:
        """Of the training run; rows of an order-free map that differ in d have one together."""
        return self._named([self.map, *self.setting_name]) if self.map in ORDER_FREE else self.name

    def _named(self, parts: list[str]) -> str:
        return "-".join(parts + [f"{self.epochs}-epochs"] * self.shortened)

    @property
    def training_d(self) -> int:
        """Pairs of the contexts trained on; the most of them, for an order-free map."""
        return self.d

    @property
    def map_label(self) -> str:
        """What a table calls the map; of an order-free one, whose rows stand together, with the number of pairs."""
        name = MIXER_LABELS[self.mixer] if self.map == "nao" and self.mixer != "network" else LABELS[self.map]
        return name + f", d = {self.d}" * (self.map in ORDER_FREE)

    @property
    def trained(self) -> bool:
        """Whether this row has a model of its own."""
        return self.map not in UNTRAINED

    @property
    def options(self) -> Any:
        options = MAPS[self.map].Options(dk=self.dk)
        return replace(options, mixer=self.mixer) if isinstance(options, NAOOptions) else options

    @property
    def recipe(self) -> Recipe:
        if self.map in ORDER_FREE:
            return Recipe(
                epochs=self.epochs,
                batch=self.batch,
                lr=1e-2,
                schedule="one-cycle",
                clip=1.0,
                random_draws=True,
                precision="float64" if self.map == "integral-posterior" else "float32",
                every=min(5, self.epochs),
            )
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
