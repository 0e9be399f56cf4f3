"""Table 4 of the paper: hyperelastic specimens, of all digits (ID) and with nines for testing only (OOD)."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernelmap.core.errors import InputError
from kernelmap.maps import MAPS, KernelMap, NAOOptions
from kernelmap.maps.nao.set_nao.options import SpectralOptions
from kernelmap.paper.linear_floor import linear_floor
from kernelmap.paper.tables.rows import ORDER_FREE, Block, PaperTable, Printed, Row
from kernelmap.problems import TrainingData
from kernelmap.problems.cache import cache_directory
from kernelmap.problems.mechanics import MechanicsData, Split, mechanics
from kernelmap.problems.mechanics.errors import errors_on_mechanics, specimens_of
from kernelmap.training import Recipe

DISCRETE_EPOCHS, VALIDATION_SYSTEMS = 16, 18
VALIDATION_INPUTS, MOST = 40, 100
"""Loads kept for validation, and pairs of the largest contexts that order-free maps are trained on."""
FEWER_SPECIMENS, FEWER_VALIDATION = 100, 9
"""The first of the data set, on which order-free maps and NAO with W spectral are trained and measured, and those kept
for validation."""
ORDER_FREE_OPTIONS = {
    "set-nao": {"waves": 12, "interpolation": 6},
    "integral-posterior": {"waves": 8, "pull": 1.0},
}
"""Pulled less, the exact limit learns the loads that all training specimens share."""
SPECTRAL_LAYERS, SPECTRAL_RATE = 6, 3e-5
"""Of NAO with W spectral, trained with Adam: from its start at an inverse, larger rates first lead away."""
POINTS = 26
"""Output points, a thirty-second of all, at which a step evaluates NAO's functions of two points."""
POSTERIOR_SPECIMENS, FLOOR_SPECIMENS = 5, 3
"""The first test specimens, on which these two rows are measured: they work on one specimen at a time."""


@dataclass(frozen=True)
class MechanicsRow(Row):
    """A row of the mechanics problem: one map per component of the displacement, as the paper's sizes have it.

    Contexts are disjoint, the same for training and test specimens. Order-free maps draw them, have one map for both
    components, and are validated on loads not seen.
    """

    split: Split = "id"

    @property
    def setting_name(self) -> list[str]:
        return [self.split]

    @property
    def label(self) -> str:
        d = f", d = {self.d}" * (self.mixer == "spectral")
        return f"{self.map_label}{d}, {self.split.upper()}"

    @property
    def shipped(self) -> str:
        return "mechanics"

    @property
    def training_d(self) -> int:
        return MOST if self.map in ORDER_FREE else self.d

    @property
    def options(self) -> NAOOptions | SpectralOptions:
        if self.map in ORDER_FREE:
            return MAPS[self.map].Options(basis="sines", **ORDER_FREE_OPTIONS[self.map])
        if self.mixer == "spectral":
            return NAOOptions(
                dk=self.dk,
                layers=SPECTRAL_LAYERS,
                mixer="spectral",
                start="inverse",
                normaliser="uncentred",
                per_component=True,
            )
        normaliser = "functions" if self.map == "nao" else "array"
        return NAOOptions(dk=self.dk, normaliser=normaliser, mixer=self.mixer, per_component=True)

    @property
    def recipe(self) -> Recipe:
        recipe = replace(super().recipe, validation_systems=VALIDATION_SYSTEMS, every=min(2, self.epochs))
        if self.map in ORDER_FREE:
            return replace(recipe, validation_inputs=VALIDATION_INPUTS, validation_systems=FEWER_VALIDATION)
        if self.mixer == "spectral":
            return replace(recipe, lr=SPECTRAL_RATE, optimizer="adam", every=1, validation_systems=FEWER_VALIDATION)
        return replace(recipe, points=POINTS if self.map == "nao" else None)

    def data(self) -> MechanicsData:
        specimens = FEWER_SPECIMENS if self.map in ORDER_FREE or self.mixer == "spectral" else None
        path = data_file(specimens)
        if not path.exists():
            fewer = "" if specimens is None else f" --specimens {specimens}"
            raise InputError(f"the specimens are missing: kernelmap generate mechanics --out {path}{fewer}")
        return mechanics(path, self.split)

    def training(self) -> TrainingData:
        train = self.data().train
        return TrainingData(train, None, train.about | {"split": self.split})

    def measure(self, model: KernelMap | None) -> dict[str, Any]:
        if model is None:
            return self._floor()
        data = self.data()
        test, heldout = data.test, data.heldout
        if not self.trained:
            names = test.names[:POSTERIOR_SPECIMENS]
            test, heldout = test.select(names), heldout.select(names)
        return errors_on_mechanics(model, test, heldout, self.d)

    def _floor(self) -> dict[str, Any]:
        specimens = specimens_of(self.split, FLOOR_SPECIMENS)
        found = dict(zip(specimens.names, map(linear_floor, specimens.images), strict=True))
        mean = sum(each["floor"] for each in found.values()) / len(found)
        errors = {"operator_error_context": None, "operator_error_heldout": mean}
        nothing = {"kernel_error": None, "kernel_error_pooled": None}
        return {"parameters": 0, "systems": {"test": errors | nothing}, "specimens": found}


def data_file(specimens: int | None = None) -> Path:
    """Where the table looks for the generated specimens: all, or the first ones alone."""
    return cache_directory() / ("mechanics.h5" if specimens is None else f"mechanics-{specimens}.h5")


def block(d: int, sizes: tuple[int, int], batch: int, epochs: int, printed: dict[Split, tuple[float, float]]) -> Block:
    """Discrete-NAO, NAO (trained for so many epochs) and the shipped posterior on both splits."""
    rows, passes = [], (DISCRETE_EPOCHS, epochs)
    for split, figures in printed.items():
        for i, name in enumerate(("discrete-nao", "nao")):
            paper = Printed(sizes[i], (figures[i],))
            rows.append(MechanicsRow(name, d, d, passes[i], batch, printed=paper, split=split))
        rows.append(MechanicsRow("posterior", d, split=split))
    return Block(f"d = {d}, dk = {d}", tuple(rows))


SPECTRAL: tuple[tuple[int, int, int, Split, float], ...] = (
    (40, 142534, 2, "id", 6.57),
    (40, 142534, 2, "ood", 6.26),
    (100, 303814, 2, "id", 4.75),
    (100, 303814, 2, "ood", 5.58),
)
"""d, the paper's size, epochs, split and the paper's error of NAO with W pointwise + spectral."""

TABLE4 = PaperTable(
    "Table 4: hyperelastic specimens",
    ("test",),
    (
        block(40, (5469528, 142534), 9, 64, {"id": (7.21, 6.57), "ood": (7.95, 6.26)}),
        block(100, (7353768, 303814), 5, 40, {"id": (6.34, 4.75), "ood": (6.01, 5.58)}),
        Block(
            f"d = dk = 40 and 100, W pointwise + spectral, on the first {FEWER_SPECIMENS} specimens",
            tuple(
                MechanicsRow("nao", d, d, epochs, 9, printed=Printed(size, (figure,)), split=split, mixer="spectral")
                for d, size, epochs, split, figure in SPECTRAL
            ),
        ),
        Block(
            f"d = 40 and 100, order-free, on the first {FEWER_SPECIMENS} specimens",
            tuple(
                MechanicsRow(name, d, epochs=epochs, batch=9, split=split)
                for name, epochs in (("set-nao", 20), ("integral-posterior", 24))
                for split in ("id", "ood")
                for d in (40, 100)
            ),
        ),
        Block("fitted to 1000 pairs", tuple(MechanicsRow("linear", 1000, split=split) for split in ("id", "ood"))),
    ),
)
