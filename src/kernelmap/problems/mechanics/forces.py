"""Body forces from a Gaussian random field: cosine series, so that they can be evaluated on any mesh."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from kernelmap.errors import InputError

Stream = int
TRAINING: Stream = 0
HELD_OUT: Stream = 1


@dataclass(frozen=True)
class ForceField:
    """f_i(x, y) = amplitude Σ_kl σ_kl ξ_ikl c_k(x) c_l(y), ξ standard normal, i = 1, 2, on the unit square.

    c_0 = 1, c_k(t) = √2 cos(kπt) for k = 1..modes; σ_00 = 0, the others σ_kl ∝ (π²(k²+l²) + τ²)^(-α/2) with Σ σ² = 1:
    f_i has mean zero and variance amplitude², on the average over the square.
    """

    amplitude: float = 1.0
    modes: int = 14
    tau: float = 3.0
    alpha: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.amplitude < np.inf and self.modes >= 1 and self.tau > 0 and 0 <= self.alpha < np.inf):
            raise InputError(
                "forces need a positive finite amplitude, modes >= 1, a positive tau and a finite alpha >= 0, "
                f"got {asdict(self)}."
            )

    @property
    def deviations(self) -> Float[np.ndarray, "k k"]:
        """σ_kl."""
        k = np.arange(self.modes + 1)
        sigma = (np.pi**2 * (k[:, None] ** 2 + k**2) + self.tau**2) ** (-self.alpha / 2)
        sigma[0, 0] = 0
        return sigma / np.linalg.norm(sigma)

    def draw(self, count: int, stream: Stream) -> Float[np.ndarray, "count 2 k k"]:
        """The coefficients of the first `count` forces of a stream; fewer are the beginning of more."""
        k = self.modes + 1
        normal = np.random.default_rng([self.seed, stream]).standard_normal((count, 2, k, k))
        return self.amplitude * self.deviations * normal

    def about(self) -> dict[str, Any]:
        return asdict(self) | {"formula": " ".join((self.__doc__ or "").split())}


def evaluate(coefficients: Float[np.ndarray, "L 2 k k"], axis: Float[np.ndarray, " m"]) -> Float[np.ndarray, "2 L n"]:
    """The forces on the m x m points of a uniform mesh, last coordinate fastest."""
    k = np.arange(coefficients.shape[-1])
    waves = np.where(k > 0, np.sqrt(2.0), 1.0) * np.cos(np.pi * axis[:, None] * k)
    values = np.einsum("ak,lckm,bm->clab", waves, coefficients, waves, optimize=True)
    return np.ascontiguousarray(values).reshape(2, len(coefficients), -1)
