"""Nonlocal diffusion with a radial kernel, as a problem."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from kernelmap.core.files import locked
from kernelmap.core.systems import SystemSet
from kernelmap.problems.base import Problem, TestData, TrainingData
from kernelmap.problems.radial.data import RadialData, Setting, radial
from kernelmap.problems.radial.inputs import Variant
from kernelmap.problems.registry import register


@register("radial")
@dataclass(frozen=True)
class Radial(Problem):
    """Nonlocal diffusion with a radial kernel: f(x) = ∫ K(r) [u(x+r) + u(x-r) - 2u(x)] dr.

    Attributes:
        setting: training on sine (7 kernels), diverse (21), single (1 kernel, 14 inputs) or fewer (21 kernels, 5
            contexts each).
        variant: as the paper's text says, or as the authors' released data are.
        dx: mesh width of locations and radii; 0.0125 or 0.025.
        noise: standard deviation of noise on f, relative to the root mean square of f.
        data_seed: of the noise.
    """

    d: ClassVar[int] = 302

    setting: Setting = "diverse"
    variant: Variant = "released"
    dx: float = 0.0125
    noise: float = 0.0
    data_seed: int = 0

    def training(self) -> TrainingData:
        train, draws = self._training()
        about = {"problem": "radial", "setting": self.setting, "variant": self.variant, "dx": self.dx}
        return TrainingData(train, draws, about)

    def test(self) -> TestData:
        return TestData(self._noisy(radial("sine", self.variant, self.dx).test, 0))

    def generate(self, out: Path) -> str:
        with locked(out):
            (train, draws), test = self._training(), self.test().systems
            RadialData(train, test, draws).save(out)
        counts = f"{len(train.names)} training systems ({train.pairs} pairs each)"
        return f"{counts}, {len(test.names)} test systems in {out}"

    def _training(self) -> tuple[SystemSet, int | None]:
        data = radial(self.setting, self.variant, self.dx)
        return self._noisy(data.train, 1), data.draws

    def _noisy(self, systems: SystemSet, stream: int) -> SystemSet:
        """Training and test systems have noise of their own."""
        return systems.with_noise(self.noise, self.data_seed + stream) if self.noise else systems
