"""Table 3 of the paper: Darcy flow, from source and from permeability to pressure, and from pressure to source."""

from dataclasses import dataclass, replace
from typing import Any

from kernelmap.maps import KernelMap, MapOptions
from kernelmap.problems.darcy import Task, darcy
from kernelmap.reproduce.darcy import errors_on_darcy
from kernelmap.reproduce.rows import LABELS, Block, PaperTable, Printed, Row, Training
from kernelmap.training.recipe import Recipe

VALIDATION_SYSTEMS = 9
POINTS = 55
"""Output points, an eighth of all, at which a step evaluates NAO's functions of two points."""


@dataclass(frozen=True)
class DarcyRow(Row):
    """A row of the Darcy problem: LayerNorm over the array of tokens, as the paper's sizes have it.

    Contexts are disjoint, the same for training and test systems, or drawn at random in every epoch, as the paper's
    permuted samples are. NAO sees the pairs in their order and must learn that it does not matter.
    """

    task: Task = "g-to-p"
    random_draws: bool = False

    @property
    def setting_name(self) -> list[str]:
        return [self.task] + ["random"] * self.random_draws

    @property
    def label(self) -> str:
        return f"{LABELS[self.map]}, {self.task}" + ", random draws" * self.random_draws

    @property
    def shipped(self) -> str:
        return "darcy"

    @property
    def options(self) -> MapOptions:
        return MapOptions(dk=self.dk, normaliser="array", hidden=(64, 128) if self.d == 20 else (32, 64))

    @property
    def recipe(self) -> Recipe:
        points = POINTS if self.map == "nao" else None
        apart = VALIDATION_SYSTEMS
        return replace(super().recipe, points=points, random_draws=self.random_draws, validation_systems=apart)

    def training(self) -> Training:
        train = darcy(self.task, truth=False).train
        return Training(train, None, train.about)

    def measure(self, model: KernelMap | None) -> dict[str, Any]:
        assert model is not None
        return errors_on_darcy(model.double(), darcy(self.task), self.d)


def block(
    d: int,
    dk: int,
    sizes: tuple[int, int],
    epochs: dict[Task, int],
    printed: dict[Task, tuple[float, float]],
) -> Block:
    """Discrete-NAO, NAO and the shipped posterior; the paper has no figures for p-to-g."""
    rows = []
    for task in epochs:
        for i, name in enumerate(("discrete-nao", "nao")):
            figures = Printed(sizes[i], (printed[task][i],) if task in printed else ())
            rows.append(DarcyRow(name, d, dk, epochs[task], 27, printed=figures, task=task))
        rows.append(DarcyRow("posterior", d, task=task))
    return Block(f"d = {d}, dk = {dk}", tuple(rows))


EPOCHS: dict[int, dict[Task, int]] = {
    20: {"g-to-p": 600, "b-to-p": 200},
    50: {"g-to-p": 1200, "b-to-p": 400, "p-to-g": 400},
}

TABLE3 = PaperTable(
    "Table 3: Darcy flow",
    ("test",),
    (
        block(20, 20, (161991, 89778), EPOCHS[20], {"g-to-p": (8.61, 8.33), "b-to-p": (10.84, 11.40)}),
        block(50, 40, (662163, 189234), EPOCHS[50], {"g-to-p": (3.28, 3.19), "b-to-p": (5.61, 5.28)}),
        Block(
            "d = 20, dk = 20, pairs drawn anew in every epoch, 200 epochs",
            (DarcyRow("discrete-nao", 20, 20, 200, 27, random_draws=True),),
        ),
    ),
)
