"""Table 4 of the paper: hyperelastic specimens, of all digits (ID) and with nines for testing only (OOD)."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernelmap.errors import InputError
from kernelmap.maps import KernelMap, MapOptions
from kernelmap.problems.cache import cache_directory
from kernelmap.problems.mechanics import MechanicsData, Split, mechanics
from kernelmap.reproduce.linear_floor import linear_floor
from kernelmap.reproduce.mechanics import errors_on_mechanics, specimens_of
from kernelmap.reproduce.rows import LABELS, Block, PaperTable, Printed, Row, Training
from kernelmap.training.recipe import Recipe

DISCRETE_EPOCHS, VALIDATION_SYSTEMS = 16, 18
POINTS = 26
"""Output points, a thirty-second of all, at which a step evaluates NAO's functions of two points."""
POSTERIOR_SPECIMENS, FLOOR_SPECIMENS = 5, 3
"""The first test specimens, on which these two rows are measured: they work on one specimen at a time."""


@dataclass(frozen=True)
class MechanicsRow(Row):
    """A row of the mechanics problem: one map per component of the displacement, as the paper's sizes have it.

    Contexts are disjoint, the same for training and test specimens.
    """

    split: Split = "id"

    @property
    def setting_name(self) -> list[str]:
        return [self.split]

    @property
    def label(self) -> str:
        return f"{LABELS[self.map]}, {self.split.upper()}"

    @property
    def shipped(self) -> str:
        return "mechanics"

    @property
    def options(self) -> MapOptions:
        normaliser = "functions" if self.map == "nao" else "array"
        return MapOptions(dk=self.dk, normaliser=normaliser, per_component=True)

    @property
    def recipe(self) -> Recipe:
        points = POINTS if self.map == "nao" else None
        every = min(2, self.epochs)
        return replace(super().recipe, points=points, validation_systems=VALIDATION_SYSTEMS, every=every)

    def data(self) -> MechanicsData:
        if not data_file().exists():
            raise InputError(f"the specimens are missing: kernelmap generate mechanics --out {data_file()}")
        return mechanics(data_file(), self.split)

    def training(self) -> Training:
        train = self.data().train
        return Training(train, None, train.about | {"split": self.split})

    def measure(self, model: KernelMap | None) -> dict[str, Any]:
        if model is None:
            return self._floor()
        data = self.data()
        test, held_out = data.test, data.held_out
        if not self.trained:
            names = test.names[:POSTERIOR_SPECIMENS]
            test, held_out = test.select(names), held_out.select(names)
        return errors_on_mechanics(model, test, held_out, self.d)

    def _floor(self) -> dict[str, Any]:
        specimens = specimens_of(self.split, FLOOR_SPECIMENS)
        found = dict(zip(specimens.names, map(linear_floor, specimens.images), strict=True))
        mean = sum(each["floor"] for each in found.values()) / len(found)
        errors = {"operator_error_context": None, "operator_error_heldout": mean}
        nothing = {"kernel_error": None, "kernel_error_pooled": None}
        return {"parameters": 0, "systems": {"test": errors | nothing}, "specimens": found}


def data_file() -> Path:
    """Where the table looks for the generated specimens."""
    return cache_directory() / "mechanics.h5"


def block(d: int, sizes: tuple[int, int], batch: int, epochs: int, printed: dict[Split, tuple[float, float]]) -> Block:
    """Discrete-NAO, NAO (trained for so many epochs) and the shipped posterior on both splits."""
    rows, passes = [], (DISCRETE_EPOCHS, epochs)
    for split, figures in printed.items():
        for i, name in enumerate(("discrete-nao", "nao")):
            paper = Printed(sizes[i], (figures[i],))
            rows.append(MechanicsRow(name, d, d, passes[i], batch, printed=paper, split=split))
        rows.append(MechanicsRow("posterior", d, split=split))
    return Block(f"d = {d}, dk = {d}", tuple(rows))


TABLE4 = PaperTable(
    "Table 4: hyperelastic specimens",
    ("test",),
    (
        block(40, (5469528, 142534), 9, 64, {"id": (7.21, 6.57), "ood": (7.95, 6.26)}),
        block(100, (7353768, 303814), 5, 40, {"id": (6.34, 4.75), "ood": (6.01, 5.58)}),
        Block("fitted to 1000 pairs", tuple(MechanicsRow("linear", 1000, split=split) for split in ("id", "ood"))),
    ),
)
