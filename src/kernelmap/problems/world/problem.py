"""The simulated world, as a problem."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from kernelmap.core.errors import InputError
from kernelmap.core.metrics import coverage, exploration_measure, kernel_error
from kernelmap.core.progress import progress
from kernelmap.evaluation import estimate
from kernelmap.maps import KernelMap
from kernelmap.problems.base import Problem, TestData, TrainingData
from kernelmap.problems.registry import register
from kernelmap.problems.world.systems import draw_system

TEST_SEED = 1_000_000
"""Test systems are those of another world seed than any training."""


@register("world")
@dataclass(frozen=True)
class World(Problem):
    """Random kernels of one coordinate, random inputs, grids, noise and numbers of pairs.

    Attributes:
        systems: how many are drawn.
        world_seed: of the drawing.
    """

    d: ClassVar[int] = 400

    systems: int = 600
    world_seed: int = 1

    def __post_init__(self) -> None:
        if self.systems < 1:
            raise InputError(f"a world has at least one system, got {self.systems}.")

    def training(self) -> TrainingData:
        contexts = [draw_system(self.world_seed, number).context for number in range(self.systems)]
        return TrainingData(contexts, None, {"problem": "world", "systems": self.systems, "seed": self.world_seed})

    def test(self) -> TestData:
        raise InputError("the systems of the world have grids of their own; `kernelmap evaluate world` measures them.")

    def errors(self, model: KernelMap, d: int) -> dict[str, Any]:
        """Median and largest kernel error in L2(rho), and mean coverage, on test systems of up to d pairs."""
        found = []
        for number in progress(range(self.systems), "World"):
            context, kernel, _ = draw_system(TEST_SEED + self.world_seed, number)
            context = context.select(torch.arange(min(d, context.d)))
            rho, truth = exploration_measure(context.U.mT, context.y), torch.from_numpy(kernel)[None]
            result = estimate(model, context)
            band = [] if result.std is None else [coverage(result.kernel.values, result.std, truth, rho, context.y)]
            found.append([float(v) for v in (kernel_error(result.kernel.values, truth, rho, context.y), *band)])
        columns = np.array(found).T
        errors = {"kernel_error": float(np.median(columns[0])), "kernel_error_worst": float(columns[0].max())}
        if len(columns) > 1:
            errors["coverage95"] = float(columns[1].mean())
        return {"parameters": model.parameter_count, "systems": {"world": errors}, "data": {"problem": "world"}}
