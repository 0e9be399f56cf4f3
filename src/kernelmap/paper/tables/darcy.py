"""Table 3 of the paper: Darcy flow, from source and from permeability to pressure, and from pressure to source."""

from dataclasses import dataclass, replace
from typing import Any

from kernelmap.maps import MAPS, KernelMap, NAOOptions
from kernelmap.maps.nao import Mixer
from kernelmap.maps.nao.options import Start
from kernelmap.maps.nao.set_nao.options import SpectralOptions
from kernelmap.paper.tables.rows import ORDER_FREE, Block, PaperTable, Printed, Row
from kernelmap.problems import TrainingData
from kernelmap.problems.darcy import Task, darcy
from kernelmap.problems.darcy.errors import errors_on_darcy
from kernelmap.training import Recipe

VALIDATION_SYSTEMS, VALIDATION_INPUTS = 9, 20
MOST = 60
"""Pairs of the largest contexts that order-free maps are trained on."""
POINTS = 55
"""Output points, an eighth of all, at which a step evaluates NAO's functions of two points."""


@dataclass(frozen=True)
class DarcyRow(Row):
    """A row of the Darcy problem.

    Networks as W go with LayerNorm over the array of tokens, as the paper's sizes have it; other forms of W with the
    continuous normaliser, or with none that centres where attention starts at an inverse: the map then belongs to no
    grid.

    Contexts are disjoint, the same for training and test systems, or drawn at random in every epoch, as the paper's
    permuted samples are. NAO sees the pairs in their order and must learn that it does not matter. Systems share their
    sources, as the paper's do, or have their own; maps that no order binds are validated on sources not seen.
    """

    mixer: Mixer = "spectral"
    layers: int = 2
    start: Start = "random"
    task: Task = "g-to-p"
    random_draws: bool = False
    own_sources: bool = False

    @property
    def setting_name(self) -> list[str]:
        return [self.task] + ["random"] * self.random_draws + ["own"] * self.own_sources

    @property
    def label(self) -> str:
        drawn = ", random draws" * self.random_draws + ", sources of their own" * self.own_sources
        return f"{self.map_label}, {self.task}{drawn}"

    @property
    def shipped(self) -> str:
        return "darcy"

    @property
    def training_d(self) -> int:
        return MOST if self.map in ORDER_FREE else self.d

    @property
    def options(self) -> NAOOptions | SpectralOptions:
        if self.map in ORDER_FREE:
            return MAPS[self.map].Options(basis="sines")
        if self.map == "nao" and self.mixer != "network":
            normaliser = "uncentred" if self.start == "inverse" else "continuous"
            return NAOOptions(dk=self.dk, mixer=self.mixer, layers=self.layers, start=self.start, normaliser=normaliser)
        hidden = (64, 128) if self.d == 20 else (32, 64)
        return NAOOptions(dk=self.dk, normaliser="array", mixer="network", layers=self.layers, hidden=hidden)

    @property
    def networks(self) -> bool:
        """Whether a step has networks of two points to evaluate."""
        return self.map == "nao" and self.mixer == "network"

    @property
    def recipe(self) -> Recipe:
        recipe = replace(super().recipe, validation_systems=VALIDATION_SYSTEMS)
        if self.map in ORDER_FREE:
            return replace(recipe, validation_inputs=0 if self.own_sources else VALIDATION_INPUTS)
        return replace(recipe, points=POINTS if self.networks else None, random_draws=self.random_draws)

    def training(self) -> TrainingData:
        train = darcy(self.task, truth=False, own_sources=self.own_sources).train
        return TrainingData(train, None, train.about)

    def measure(self, model: KernelMap | None) -> dict[str, Any]:
        assert model is not None
        return errors_on_darcy(model.double(), darcy(self.task, own_sources=self.own_sources), self.d)


def block(
    d: int,
    dk: int,
    sizes: tuple[int, int],
    epochs: dict[Task, int],
    printed: dict[Task, tuple[float, float]],
) -> Block:
    """Discrete-NAO, NAO in its three forms and the shipped posterior; the paper has no figures for p-to-g."""
    rows = []
    for task in epochs:
        paper = [Printed(size, (printed[task][i],) if task in printed else ()) for i, size in enumerate(sizes)]
        rows.append(DarcyRow("discrete-nao", d, dk, epochs[task], 27, printed=paper[0], task=task))
        rows.append(DarcyRow("nao", d, dk, epochs[task], 27, printed=paper[1], mixer="network", task=task))
        layers, start, passes = SPECTRAL[d][task]
        rows.append(DarcyRow("nao", d, dk, passes, 9, printed=paper[1], layers=layers, start=start, task=task))
        rows.append(DarcyRow("nao", d, dk, CONVOLUTION_EPOCHS, 9, mixer="convolution", task=task))
        rows.append(DarcyRow("posterior", d, task=task))
    return Block(f"d = {d}, dk = {dk}", tuple(rows))


def order_free(own_sources: bool) -> tuple[DarcyRow, ...]:
    """One set of weights for all d."""
    epochs = {"set-nao": 70, "integral-posterior": 40}
    return tuple(
        DarcyRow(name, d, epochs=epochs[name], batch=9, own_sources=own_sources) for name in epochs for d in (20, 50)
    )


EPOCHS: dict[int, dict[Task, int]] = {
    20: {"g-to-p": 600, "b-to-p": 200},
    50: {"g-to-p": 1200, "b-to-p": 400, "p-to-g": 400},
}

SPECTRAL: dict[int, dict[Task, tuple[int, Start, int]]] = {
    20: {"g-to-p": (4, "inverse", 15), "b-to-p": (4, "inverse", 20)},
    50: {"g-to-p": (2, "random", 200), "b-to-p": (4, "inverse", 60), "p-to-g": (2, "random", 60)},
}
"""Layers, start and epochs of NAO with W pointwise + spectral; its batches are smaller."""
CONVOLUTION_EPOCHS = 60

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
        Block("d = 20 and 50, order-free, shared sources", order_free(own_sources=False)),
        Block("d = 20 and 50, order-free, sources of their own", order_free(own_sources=True)),
    ),
)
