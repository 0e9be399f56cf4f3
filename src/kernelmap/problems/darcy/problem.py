"""Flow through a porous medium, as a problem."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from kernelmap.core.files import locked
from kernelmap.maps import KernelMap
from kernelmap.problems.base import Problem, TestData, TrainingData
from kernelmap.problems.darcy.data import DarcyData, Task, darcy
from kernelmap.problems.darcy.errors import errors_on_darcy
from kernelmap.problems.darcy.scheme import FaceMean
from kernelmap.problems.registry import register


@register("darcy")
@dataclass(frozen=True)
class Darcy(Problem):
    """Flow through a porous medium: -div(b grad p) = g on the unit square, p = 0 on its boundary.

    Attributes:
        task: g-to-p (the kernel is the Green's function), p-to-g (the stiffness) or b-to-p (not linear).
        n: nodes in each direction.
        faces: mean of the permeability between two nodes.
        own_sources: give every system sources of its own; shared by all, as in the paper, by default.
        data_seed: of microstructures and sources.
    """

    d: ClassVar[int] = 50

    task: Task = "g-to-p"
    n: int = 21
    faces: FaceMean = "arithmetic"
    own_sources: bool = False
    data_seed: int = 0

    def training(self) -> TrainingData:
        train = self._data(truth=False).train
        return TrainingData(train, None, train.about)

    def test(self) -> TestData:
        data = self._data()
        return TestData(data.test, data.heldout)

    def errors(self, model: KernelMap, d: int) -> dict[str, Any]:
        """The mean over the test systems."""
        data = self._data()
        return errors_on_darcy(model, data, d) | {"data": data.test.about}

    def generate(self, out: Path) -> str:
        with locked(out):
            data = self._data()
            data.save(out)
        counts = f"{len(data.train.names)} training systems ({data.train.pairs} pairs each)"
        return f"{counts}, {len(data.test.names)} test systems in {out}"

    def _data(self, truth: bool = True) -> DarcyData:
        return darcy(
            self.task, self.n, faces=self.faces, own_sources=self.own_sources, truth=truth, seed=self.data_seed
        )
