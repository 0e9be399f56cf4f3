"""Hyperelastic specimens under body forces, as a problem."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from tyro.conf import arg

from kernelmap.core.errors import InputError
from kernelmap.maps import KernelMap
from kernelmap.problems.base import Problem, TestData, TrainingData
from kernelmap.problems.mechanics.data import mechanics
from kernelmap.problems.mechanics.errors import errors_on_mechanics, solved, specimens_of
from kernelmap.problems.mechanics.forces import ForceField
from kernelmap.problems.mechanics.generation import generate
from kernelmap.problems.mechanics.images import Split, mnist, read_bitmaps
from kernelmap.problems.mechanics.plan import ELEMENTS, LOADS, Plan
from kernelmap.problems.registry import register


@dataclass(frozen=True)
class MechanicsGenerator:
    """Hyperelastic specimens from MNIST digits under body forces; a run that was killed goes on where it was.

    Attributes:
        specimens: how many specimens, of the digits 0, 1, .., 9 in turn; all by default.
        loads: body forces, the same for all specimens; specimens for testing get a quarter more.
        elements: p1-, q1- or q2- and the cells per side, a multiple of the pixels, as in q2-28 and p1-140.
        images: bitmaps of your own: a .npy file of integers from 0 to 255, shape (S, n, n).
        jobs: processes; -1 for one per core.
    """

    specimens: int | None = None
    loads: int = LOADS
    elements: str = ELEMENTS
    images: Path | None = None
    jobs: int = -1
    forces: Annotated[ForceField, arg(name="")] = field(default_factory=ForceField)

    def generate(self, out: Path) -> str:
        chosen = mnist() if self.images is None else read_bitmaps(self.images)
        if self.specimens is not None:
            chosen = chosen.first(self.specimens)
        plan = Plan(chosen, self.forces, self.loads, self.elements)
        failed = generate(plan, out, self.jobs)
        counts = f"{len(chosen)} specimens under {self.loads} loads, those for testing under {plan.heldout} more"
        if not failed:
            return f"{counts}, in {out}"
        return (
            f"{counts}, in {out}\n"
            f"not converged, and not a number in the file: {', '.join(failed)}. Give a smaller --amplitude."
        )


@register("mechanics")
@dataclass(frozen=True)
class Mechanics(Problem):
    """Hyperelastic specimens under body forces, with two components of force and displacement.

    Attributes:
        data: written by `kernelmap generate mechanics`; without it, test specimens are solved anew.
        split: id (all digits in training) or ood (nines for testing only).
        specimens: how many of the split's test specimens; 5 by default, all of a file.
    """

    d: ClassVar[int] = 100
    Generator = MechanicsGenerator

    data: Path | None = None
    split: Split = "id"
    specimens: int | None = None

    def training(self) -> TrainingData:
        if self.data is None:
            raise InputError("training needs specimens: give --data FILE, written by `kernelmap generate mechanics`.")
        train = mechanics(self.data, self.split).train
        return TrainingData(train, None, train.about | {"split": self.split})

    def test(self) -> TestData:
        if self.data is None:
            return TestData(*solved(specimens_of(self.split, 5 if self.specimens is None else self.specimens)))
        found = mechanics(self.data, self.split)
        names = found.test.names[: self.specimens]
        return TestData(found.test.select(names), found.heldout.select(names))

    def errors(self, model: KernelMap, d: int) -> dict[str, Any]:
        """The mean over the test specimens, and each one's."""
        data = self.test()
        assert data.heldout is not None
        about = data.systems.about | {"split": self.split, "specimens": len(data.systems.names)}
        return errors_on_mechanics(model, data.systems, data.heldout, d) | {"data": about}
