"""Body forces from a Gaussian random field: cosine series, so that they can be evaluated on any mesh."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from kernelmap.core.errors import InputError
from kernelmap.core.files.limits import check_seed
from kernelmap.problems import random_fields
from kernelmap.problems.random_fields import deviations

TRAINING, HELDOUT = 0, 1
"""Streams of random numbers: of the loads that training sees, and of those it does not."""


@dataclass(frozen=True)
class ForceField:
    """f_i(x, y) = amplitude Σ_kl σ_kl ξ_ikl c_k(x) c_l(y), ξ standard normal, i = 1, 2, on the unit square.

    c_0 = 1, c_k(t) = √2 cos(kπt) for k = 1..modes; σ_00 = 0, the others σ_kl ∝ (π²(k²+l²) + τ²)^(-α/2) with Σ σ² = 1:
    f_i has mean zero and variance amplitude², on the average over the square.

    Attributes:
        amplitude: standard deviation of each component of the force.
        modes: cosine modes in each direction.
        tau: where the spectrum starts to fall.
        alpha: how fast it falls.
        seed: of the forces.
    """

    amplitude: float = 1.0
    modes: int = 14
    tau: float = 3.0
    alpha: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        finite = all(0 < value < np.inf for value in (self.amplitude, self.tau, self.alpha))
        check_seed(self.seed)
        if not finite or self.modes < 1:
            raise InputError(f"forces need a positive finite amplitude, tau, alpha and modes >= 1; got {asdict(self)}.")

    @property
    def deviations(self) -> Float[np.ndarray, "k k"]:
        """σ_kl."""
        return deviations(self.modes + 1, self.tau, self.alpha)

    def draw(self, count: int, stream: int) -> Float[np.ndarray, "count 2 k k"]:
        """The coefficients of the first `count` forces of a stream; fewer are the beginning of more."""
        k = self.modes + 1
        normal = np.random.default_rng([self.seed, stream]).standard_normal((count, 2, k, k))
        return self.amplitude * self.deviations * normal

    def about(self) -> dict[str, Any]:
        formula, _, _ = (self.__doc__ or "").partition("Attributes:")
        return asdict(self) | {"formula": " ".join(formula.split())}


def evaluate(coefficients: Float[np.ndarray, "L 2 k k"], axis: Float[np.ndarray, " m"]) -> Float[np.ndarray, "2 L n"]:
    """The forces on the m x m points of a uniform mesh, last coordinate fastest."""
    values = random_fields.evaluate(coefficients, axis).swapaxes(0, 1)
    return np.ascontiguousarray(values).reshape(2, len(coefficients), -1)
