"""The kernel families of the radial problem.

The released data differ from the paper's text in support and amplitude; both variants are here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import eval_legendre

from kernelmap.problems.radial.inputs import Variant


@dataclass(frozen=True)
class RadialKernel:
    """K(r) = function(r) for r <= support and 0 beyond; `breakpoints` are radii where it jumps or has a kink."""

    function: Callable[[np.ndarray], np.ndarray]
    support: float
    breakpoints: tuple[float, ...] = ()

    def __call__(self, r: np.ndarray | float) -> np.ndarray:
        return np.where(r <= self.support, self.function(np.asarray(r)), 0.0)


def sine(eta: int, variant: Variant) -> RadialKernel:
    """exp(-η r) sin(6r)."""
    return RadialKernel(lambda r: np.exp(-eta * r) * np.sin(6 * r), 11.0 if variant == "paper" else 10.0)


def cosine(eta: int, variant: Variant) -> RadialKernel:
    """(10-r)²/20 cos(η r) in the paper; 0.1 (10-r)/20 cos(η r) in the released data."""
    if variant == "paper":
        return RadialKernel(lambda r: (10 - r) ** 2 / 20 * np.cos(eta * r), 10.0)
    return RadialKernel(lambda r: 0.1 * (10 - r) / 20 * np.cos(eta * r), 10.0)


def polynomial(eta: int, variant: Variant) -> RadialKernel:
    """exp(-0.1 r) p_η((r-10)/10) with the Legendre polynomial p_η; times 0.1 in the released data."""
    scale = 1.0 if variant == "paper" else 0.1
    return RadialKernel(lambda r: scale * np.exp(-0.1 * r) * eval_legendre(eta, (r - 10) / 10), 10.0)


def ood1() -> RadialKernel:
    """r (11-r) exp(-5r) sin(6r)."""
    return RadialKernel(lambda r: r * (11 - r) * np.exp(-5 * r) * np.sin(6 * r), 11.0)


def ood2() -> RadialKernel:
    """The Gaussian exp(-r²/2) / sqrt(2π), integrated up to r = 11."""
    return RadialKernel(lambda r: np.exp(-(r**2) / 2) / np.sqrt(2 * np.pi), 11.0)


def training_kernels(variant: Variant) -> dict[str, RadialKernel]:
    """The 21 kernels of the diverse setting."""
    return (
        {f"sine-{eta}": sine(eta, variant) for eta in (1, 2, 3, 4, 6, 7, 8)}
        | {f"cosine-{eta}": cosine(eta, variant) for eta in range(7)}
        | {f"polynomial-{eta}": polynomial(eta, variant) for eta in range(1, 8)}
    )


def test_kernels(variant: Variant) -> dict[str, RadialKernel]:
    """`id` is the sine kernel with η = 5, which no training setting contains."""
    return {"id": sine(5, variant), "ood1": ood1(), "ood2": ood2()}
