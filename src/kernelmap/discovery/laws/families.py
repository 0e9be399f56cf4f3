"""Families of simple laws: K(t) = Σ_a A_a φ_a(t; θ), linear in amplitudes A, with one or two parameters θ.

t is the radius, or the size of the lag, in units of the kernel's range, in cells of width h. All θ are positive,
and their priors are uniform in log θ between the ends given here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

Array = np.ndarray
Unit = Literal["length", "per length", "none"]


@dataclass(frozen=True)
class Parameter:
    """θ in units of the range, or a pure number; `points` of the grid that fits start from."""

    name: str
    low: float
    high: float
    unit: Unit = "length"
    points: int = 24

    def grid(self) -> Float[Array, " points"]:
        return np.geomspace(self.low, self.high, self.points)


@dataclass(frozen=True)
class Family:
    """`shapes(t, h, θ)` is (L, N), one row for each amplitude.

    terms: names of the laws that a sum is made of.
    `powers(θ)` of a length are in the unit of each amplitude: A of t^-p has the unit of K times length^p.
    """

    name: str
    formula: str
    parameters: tuple[Parameter, ...]
    shapes: Callable[[Array, float, Array], Array]
    amplitudes: tuple[str, ...] = ("A",)
    powers: Callable[[Array], Array] = lambda p: np.zeros(1)
    terms: tuple[str, ...] = ("",)


def _ball(t: Array, h: float, end: float) -> Array:
    """1 up to the end and 0 beyond; in the cell of the end, the part of it that lies before."""
    return np.clip((end - t) / h + 0.5, 0, 1)


def _away(t: Array, h: float) -> Array:
    """t, for singular laws: at zero the middle of half a cell."""
    return np.maximum(t, h / 4)


def _waves(t: Array, h: float, theta: Array) -> Array:
    phase = theta[1] * t
    return np.exp(-t / theta[0]) * np.stack([np.cos(phase), np.sin(phase)])


LENGTH = Parameter("L", 0.01, 3.0)
END = Parameter("δ", 0.03, 1.0)

EXPONENTIAL = Family("exponential", "A exp(-t/L)", (LENGTH,), lambda t, h, p: np.exp(-t / p[0])[None])
GAUSSIAN = Family(
    "Gaussian",
    "A exp(-t²/2L²)",
    (Parameter("L", 0.01, 1.0),),
    lambda t, h, p: np.exp(-0.5 * (t / p[0]) ** 2)[None],
)
POWER = Family(
    "power law",
    "A t^-p",
    (Parameter("p", 0.1, 3.0, "none"),),
    lambda t, h, p: (_away(t, h) ** -p[0])[None],
    powers=lambda p: p[:1],
)
BALL = Family("constant on a ball", "A for t < δ", (END,), lambda t, h, p: _ball(t, h, p[0])[None])
GAMMA = Family(
    "Gamma",
    "A t^(k-1) exp(-t/L) / (Γ(k) L^k)",
    (Parameter("k", 0.2, 12.0, "none", 20), Parameter("L", 0.01, 1.0, points=20)),
    lambda t, h, p: np.exp((p[0] - 1) * np.log(_away(t, h)) - t / p[1] - gammaln(p[0]) - p[0] * np.log(p[1]))[None],
    powers=lambda p: np.ones(1),
)
WAVE = Family(
    "damped cosine",
    "exp(-t/L) (A cos ωt + B sin ωt)",
    (Parameter("L", 0.02, 3.0, points=12), Parameter("ω", 2.0, 150.0, "per length", 40)),
    _waves,
    ("A", "B"),
    lambda p: np.zeros(2),
)
PERIDYNAMIC = Family(
    "peridynamic, 1/t",
    "A/t for t < δ",
    (END,),
    lambda t, h, p: (_ball(t, h, p[0]) / _away(t, h))[None],
    powers=lambda p: np.ones(1),
)
CONICAL = Family(
    "peridynamic, conical", "A (1 - t/δ) for t < δ", (END,), lambda t, h, p: np.maximum(1 - t / p[0], 0)[None]
)
FRACTIONAL = Family(
    "tempered fractional",
    "A t^-(1+α) exp(-t/L)",
    (Parameter("α", 0.02, 2.0, "none", 16), Parameter("L", 0.02, 3.0, points=12)),
    lambda t, h, p: (_away(t, h) ** -(1 + p[0]) * np.exp(-t / p[1]))[None],
    powers=lambda p: 1 + p[:1],
)

SINGLE = (EXPONENTIAL, GAUSSIAN, POWER, GAMMA, WAVE, BALL, PERIDYNAMIC, CONICAL, FRACTIONAL)
ADDED = (EXPONENTIAL, GAUSSIAN, POWER, BALL)
"""Laws of one parameter, of which sums of two are tried."""


def sums() -> list[Family]:
    return [_sum(first, second) for i, first in enumerate(ADDED) for second in ADDED[i:]]


def _sum(first: Family, second: Family) -> Family:
    """A first(t; θ1) + B second(t; θ2)."""
    (one,), (two,) = first.parameters, second.parameters
    parameters = tuple(
        Parameter(f"{p.name}{number}", p.low, p.high, p.unit, p.points) for number, p in ((1, one), (2, two))
    )
    formulas = (
        family.formula.replace(p.name, f"{p.name}{number}").replace("A ", f"{letter} ", 1)
        for family, p, number, letter in ((first, one, 1, "A"), (second, two, 2, "B"))
    )
    return Family(
        f"{first.name} + {second.name}",
        " + ".join(formulas),
        parameters,
        lambda t, h, p: np.concatenate([first.shapes(t, h, p[:1]), second.shapes(t, h, p[1:])]),
        ("A", "B"),
        lambda p: np.concatenate([first.powers(p[:1]), second.powers(p[1:])]),
        (first.name, second.name),
    )


FAMILIES = (*SINGLE, *sums())
