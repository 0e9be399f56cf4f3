"""The data sets of the radial experiments: generated once, cached, and cut into the paper's settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from kernelmap.core.errors import InputError
from kernelmap.core.files import open_hdf5, read_attribute
from kernelmap.core.grids import point
from kernelmap.core.grids import radii as radial_grid
from kernelmap.core.progress import progress
from kernelmap.core.systems import SystemSet
from kernelmap.operators.radial import radial_tokens
from kernelmap.problems.base import read_part, write_parts
from kernelmap.problems.cache import cached
from kernelmap.problems.radial.inputs import RADIUS, Inputs, Variant, fourteen_waves, locations, two_waves
from kernelmap.problems.radial.kernels import RadialKernel, test_kernels, training_kernels
from kernelmap.problems.radial.quadrature import response

FINEST = 10_000
"""More radii than this would take tens of gigabytes."""

Setting = Literal["sine", "diverse", "single", "fewer"]


@dataclass(frozen=True)
class RadialData:
    """What a setting trains on and is tested on; `draws` limits the contexts a training system gives."""

    train: SystemSet
    test: SystemSet
    draws: int | None = None

    def save(self, path: Path | str) -> None:
        write_parts(path, "radial", {"train": self.train, "test": self.test}, draws=self.draws or 0)

    @classmethod
    def load(cls, path: Path | str) -> "RadialData":
        with open_hdf5(path) as file:
            draws = int(read_attribute(file, "draws")) or None
        return cls(read_part(path, "train"), read_part(path, "test"), draws)


def radial(setting: Setting, variant: Variant = "released", dx: float = 0.0125) -> RadialData:
    """Training and test systems of one of the paper's settings.

    sine: 7 sine kernels; diverse: all 21; single: one sine kernel acting on 14 inputs; fewer: all 21 with 5
    contexts each.
    """
    both = _cached(training_kernels(variant) | test_kernels(variant), two_waves(variant), variant, dx, "systems")
    test = both.select(tuple(test_kernels(variant)))
    if setting == "single":
        kernel = {"sine-1": training_kernels(variant)["sine-1"]}
        return RadialData(_cached(kernel, fourteen_waves(variant), variant, dx, "single"), test)
    names = [name for name in training_kernels(variant) if setting != "sine" or name.startswith("sine")]
    return RadialData(both.select(names), test, draws=5 if setting == "fewer" else None)


def radial_systems(
    kernels: Mapping[str, RadialKernel], inputs: Inputs, variant: Variant = "released", dx: float = 0.0125
) -> SystemSet:
    """Pairs of any radial kernels: every input at every location is one pair (g[u](., x), f(x))."""
    count = round(RADIUS / dx) if dx > 0 else 0
    if not 1 <= count <= FINEST or abs(count * dx - RADIUS) > 1e-9:
        raise InputError(f"dx must divide the radius {RADIUS:g}, as 0.0125 and 0.025 do; got {dx}.")
    x = locations(variant, dx)
    mesh = x[0] + dx * np.arange(-count, len(x) + count)
    tokens = radial_tokens(torch.from_numpy(inputs.functions(mesh)), count).flatten(0, 1)
    grid = radial_grid(dx, count)
    r = grid.points[:, 0].numpy()
    f = [response(kernel, inputs, x).reshape(-1, 1) for kernel in progress(kernels.values(), "Radial systems")]
    truth = [kernel(r)[None] for kernel in kernels.values()]
    about: dict[str, Any] = {"problem": "radial", "variant": variant, "dx": dx}
    return SystemSet(
        tuple(kernels),
        tokens[None],
        torch.from_numpy(np.stack(f)),
        grid,
        point(),
        torch.from_numpy(np.stack(truth)),
        about,
    )


def _cached(kernels: Mapping[str, RadialKernel], inputs: Inputs, variant: Variant, dx: float, name: str) -> SystemSet:
    here = Path(__file__).parent
    return cached(f"{name}-{variant}-{dx:g}.h5", here, lambda: radial_systems(kernels, inputs, variant, dx))
