"""Tables 1 and 2 of the paper: the radial kernel problem. Printed figures are those of the paper's tables."""

from dataclasses import dataclass, replace
from typing import Any

import torch

from kernelmap.core.context import Context
from kernelmap.core.kernel import Kernel
from kernelmap.estimators import dartr
from kernelmap.evaluation.evaluate import Estimated, errors, evaluate
from kernelmap.maps import MAPS, KernelMap
from kernelmap.paper.tables.rows import ORDER_FREE, Block, PaperTable, Printed, Row
from kernelmap.problems import TrainingData
from kernelmap.problems.radial import Setting, Variant, radial
from kernelmap.training import Recipe

MOST = 302
"""Pairs of the largest contexts that order-free maps are trained on."""


@dataclass(frozen=True)
class RadialRow(Row):
    """A row of the radial kernel problem, in one of the paper's settings and one variant of its data."""

    setting: Setting = "sine"
    variant: Variant = "released"

    @property
    def setting_name(self) -> list[str]:
        setting = [self.setting] if self.trained and self.setting != "sine" else []
        return setting + ["paper"] * (self.variant == "paper")

    @property
    def label(self) -> str:
        dk = f", dk = {self.dk}" if self.trained and self.dk != 10 else ""
        return self.map_label + dk + (" (as the paper's text)" if self.variant == "paper" else "")

    @property
    def shipped(self) -> str:
        return "radial"

    @property
    def training_d(self) -> int:
        return MOST if self.map in ORDER_FREE else self.d

    @property
    def options(self) -> Any:
        return MAPS[self.map].Options() if self.map in ORDER_FREE else super().options

    @property
    def recipe(self) -> Recipe:
        return replace(super().recipe, validation_systems=1) if self.map in ORDER_FREE else super().recipe

    def training(self) -> TrainingData:
        data = radial(self.setting, self.variant)
        about = {"problem": "radial", "setting": self.setting, "variant": self.variant}
        return TrainingData(data.train, data.draws, about)

    def measure(self, model: KernelMap | None) -> dict[str, Any]:
        test = radial("sine", self.variant).test
        if model is None:
            return {"parameters": 0, "systems": errors(estimate_by_dartr, test, self.d)}
        return evaluate(model.double(), test, self.d)


def estimate_by_dartr(contexts: Context) -> Estimated:
    """DARTR of every context of a batch, one after the other."""
    U = contexts.U.expand(*contexts.batch_shape, *contexts.U.shape[-2:]).flatten(0, -3)
    F = contexts.F.flatten(0, -3)
    kernels = [dartr(Context(u, f, contexts.y, contexts.x)).kernel.values for u, f in zip(U, F, strict=True)]
    values = torch.stack(kernels).reshape(*contexts.batch_shape, *kernels[0].shape)
    return Estimated(Kernel(values, contexts.y, contexts.x), None)


NAO_10 = RadialRow("nao", printed=Printed(18843, (1.48, 8.10, 221.04), (5.40, 10.02, 420.60)))
DISCRETE_10 = RadialRow("discrete-nao", printed=Printed(16526, (1.33, 25.81, 138.00), (29.02, 28.80, 97.14)))
NAO_20 = RadialRow("nao", dk=20, printed=Printed(30963, (1.33, 9.12, 211.78), (4.63, 9.14, 329.66)))
DISCRETE_20 = RadialRow(
    "discrete-nao", dk=20, epochs=600, printed=Printed(28645, (1.35, 18.70, 99.50), (35.49, 30.81, 101.08))
)
DISCRETE_40 = RadialRow(
    "discrete-nao", dk=40, epochs=600, printed=Printed(52886, (1.30, 31.37, 49.83), (38.89, 30.02, 129.84))
)
NAO_40 = RadialRow("nao", dk=40, printed=Printed(55203, (0.67, 7.34, 234.43), (4.03, 12.16, 1062.3)))
AUTOENCODER = RadialRow(
    "autoencoder",
    epochs=3000,
    optimizer="adam",
    printed=Printed(16424, (12.97, 1041.49, 698.72), (22.56, 136.79, 304.37)),
)
SOFTMAX = RadialRow("softmax-nao", printed=Printed(18843, (13.45, 66.06), (67.55, 85.80)))
AFNO = RadialRow("afno", printed=Printed(19605, (22.62, 68.76)))
NAO_U = RadialRow("nao-u", printed=Printed(18842, (13.68, 66.68), (20.46, 74.03)))


def untrained(d: int) -> tuple[RadialRow, RadialRow]:
    """The shipped posterior map, one set of weights for all d, and DARTR."""
    return RadialRow("posterior", d), RadialRow("dartr", d)


def order_free(setting: Setting, *counts: int) -> tuple[RadialRow, ...]:
    """One set of weights for all d."""
    return tuple(
        RadialRow(name, d, epochs=20, batch=7, setting=setting)
        for name in ("set-nao", "integral-posterior")
        for d in counts
    )


def fewer_pairs(d: int, batch: int, epochs: int, nao: Printed, discrete: Printed) -> Block:
    rows = (RadialRow("discrete-nao", d, printed=discrete), RadialRow("nao", d, printed=nao))
    return Block(f"d = {d}, dk = 10", (*(replace(row, batch=batch, epochs=epochs) for row in rows), *untrained(d)))


TABLE1 = PaperTable(
    "Table 1: radial kernels, sine setting",
    ("id", "ood1"),
    (
        Block(
            "d = 302, dk = 10",
            (
                DISCRETE_10,
                replace(SOFTMAX, epochs=200, optimizer="adam"),
                replace(AFNO, epochs=600, optimizer="adam"),
                NAO_10,
                replace(NAO_U, epochs=1500, optimizer="adam"),
                AUTOENCODER,
                *untrained(302),
                replace(NAO_10, variant="paper"),
            ),
        ),
        Block(
            "d = 302, dk = 5",
            (
                RadialRow("discrete-nao", dk=5, epochs=600, printed=Printed(10465, (1.63, 15.80), (33.21, 30.39))),
                RadialRow("nao", dk=5, printed=Printed(12783, (2.34, 9.23), (6.87, 14.62))),
            ),
        ),
        Block("d = 302, dk = 20", (DISCRETE_20, NAO_20)),
        fewer_pairs(
            100, 14, 1200, Printed(10763, (1.07, 6.35), (7.41, 17.02)), Printed(8446, (1.73, 14.92), (34.52, 35.20))
        ),
        fewer_pairs(
            50, 14, 800, Printed(8763, (1.56, 7.19), (15.95, 29.47)), Printed(6446, (2.29, 10.31), (41.80, 45.30))
        ),
        fewer_pairs(
            30, 28, 800, Printed(7963, (2.94, 8.04), (22.65, 33.77)), Printed(5646, (5.60, 11.31), (58.24, 64.23))
        ),
        Block("d = 302, 100, 50 and 30, order-free", order_free("sine", 302, 100, 50, 30)),
    ),
)

TABLE2 = PaperTable(
    "Table 2: radial kernels, training settings, d = 302",
    ("id", "ood1", "ood2"),
    (
        Block(
            "sine only: 7 systems, 105 contexts",
            (
                DISCRETE_10,
                NAO_10,
                DISCRETE_20,
                NAO_20,
                DISCRETE_40,
                replace(NAO_40, epochs=1500),
                AUTOENCODER,
            ),
        ),
        Block(
            "sine, cosine and polynomial: 21 systems, 315 contexts",
            tuple(
                replace(row, setting="diverse", batch=21, epochs=700 if row.map == "discrete-nao" else row.epochs)
                for row in (
                    RadialRow("discrete-nao", printed=Printed(16526, (2.27, 13.02, 11.50), (10.41, 30.79, 77.80))),
                    RadialRow("nao", printed=Printed(18843, (2.34, 14.37, 10.05), (7.26, 28.23, 94.38))),
                    RadialRow(
                        "discrete-nao", dk=20, printed=Printed(28645, (1.60, 6.03, 19.73), (21.83, 21.29, 18.97))
                    ),
                    RadialRow("nao", dk=20, printed=Printed(30963, (1.64, 3.25, 3.58), (5.45, 8.87, 15.82))),
                    RadialRow(
                        "discrete-nao", dk=40, printed=Printed(52886, (1.45, 5.49, 18.26), (20.07, 19.46, 18.44))
                    ),
                    RadialRow("nao", dk=40, printed=Printed(55203, (1.54, 3.09, 7.69), (5.04, 6.92, 10.48))),
                    replace(
                        AUTOENCODER, dk=31, printed=Printed(56486, (12.67, 341.96, 211.61), (27.06, 52.43, 128.08))
                    ),
                )
            )
            + untrained(302)
            + order_free("diverse", 302),
        ),
        Block(
            "single task: one system, 105 contexts",
            tuple(
                replace(row, setting="single", epochs=300)
                for row in (
                    RadialRow("nao", printed=Printed(18843, (104.49, 104.37, 56.64), (100.31, 100.00, 94.98))),
                    RadialRow("nao", dk=20, printed=Printed(30963, (116.89, 105.52, 85.40), (99.02, 99.55, 98.37))),
                    RadialRow("nao", dk=40, printed=Printed(55203, (111.33, 104.12, 76.78), (101.61, 100.33, 95.90))),
                )
            ),
        ),
        Block(
            "fewer samples: 21 systems, 105 contexts",
            tuple(
                replace(row, setting="fewer", batch=21, epochs=4000)
                for row in (
                    RadialRow("nao", printed=Printed(18843, (4.23, 15.34, 11.13), (10.11, 25.23, 97.63))),
                    RadialRow("nao", dk=20, printed=Printed(30963, (4.15, 10.15, 9.59), (8.84, 23.08, 20.05))),
                    RadialRow("nao", dk=40, printed=Printed(55203, (3.69, 11.67, 6.08), (9.19, 24.04, 25.58))),
                )
            ),
        ),
    ),
)
