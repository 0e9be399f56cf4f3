"""A small map of kernels of one coordinate, and systems to try it on."""

import torch

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.posterior import Kernel1dMap, Kernel1dOptions
from kernelmap.posterior.kernel1d.errors import Density

SMALL = Kernel1dOptions(
    cosines=24,
    warps=(0.0, 0.1),
    rates=(0.0, 3.0),
    powers=(),
    spectra=((3, 2), (6, 6)),
    floors=(1e-3,),
    bands=(),
    peak_widths=(),
    ends=(),
    survivors=(4, 2),
)


def flat(low: float, high: float) -> Density:
    knots = torch.linspace(low, high, 5, dtype=torch.float64)
    return Density(knots, torch.zeros_like(knots)).normalised()


def waves(d: int, n: int = 60, seed: int = 0, noise: float = 0.0) -> tuple[Context, torch.Tensor]:
    """Radial tokens of random waves, responses to a smooth kernel, and that kernel."""
    generator = torch.Generator().manual_seed(seed)
    y = grids.radii(1 / n, n)
    k = 1 + 14 * torch.rand(d, generator=generator, dtype=torch.float64)
    U = (torch.cos(k * y.points) - 1) * torch.randn(d, generator=generator, dtype=torch.float64)
    kernel = torch.exp(-3 * y.points[:, 0]) * torch.cos(5 * y.points[:, 0])
    f = (kernel * y.weights) @ U
    f = f + noise * f.square().mean().sqrt() * torch.randn(d, generator=generator, dtype=torch.float64)
    return Context(U, f[None], y, grids.point()), kernel


def model(options: Kernel1dOptions = SMALL) -> Kernel1dMap:
    return Kernel1dMap(ContextShape.of(waves(30)[0]), options)
