"""A user's own systems, as a problem."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from kernelmap.core.errors import InputError
from kernelmap.io import read_systems
from kernelmap.problems.base import Problem, TestData, TrainingData
from kernelmap.problems.registry import register


@register("own")
@dataclass(frozen=True)
class Own(Problem):
    """Systems of your own: f (S, P, M), u (S, P, N) or (P, N), y and x, from an NPZ, HDF5 or MAT file.

    Attributes:
        data: the file (docs/own-systems.md); in `evaluate`, systems that were not trained on.
    """

    d: ClassVar[int] = 25

    data: Path

    def training(self) -> TrainingData:
        systems = read_systems(self.data)
        # By the checksum a run is not resumed with other data under the same name.
        known = systems.about | {"sha256": systems.checksum()}
        return TrainingData(replace(systems, about=known), None, {"problem": "own"})

    def test(self) -> TestData:
        return TestData(read_systems(self.data))

    def generate(self, out: Path) -> str:
        raise InputError("your own systems are not generated: write them to a file, as docs/own-systems.md says.")
