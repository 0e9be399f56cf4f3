"""The energy of a body along lines F + tH, one for each load, and the search for a step along them."""

import numpy as np
from jaxtyping import Float

from kernelmap.problems.mechanics.solver.assembly import Body, Gradient, PerLoad
from kernelmap.problems.mechanics.solver.material import determinant

HALVINGS = 30
SUFFICIENT = 1e-4


class Lines:
    """Along a line, F:F and J are quadratic in t: J(t) = J + t J₁ + t² J₂ with J₁ = cof F:H and J₂ = det H.

    Their coefficients are computed once; changes of the energy come without the cancellation of two large energies.
    """

    def __init__(self, body: Body, F: Gradient, H: Gradient) -> None:
        self.mu, self.lam = body.weighted_lame
        self.J = determinant(F)
        self.J1 = F[0, 0] * H[1, 1]
        self.J1 += F[1, 1] * H[0, 0]
        self.J1 -= F[0, 1] * H[1, 0]
        self.J1 -= F[1, 0] * H[0, 1]
        self.J2 = determinant(H)
        self.inverse = 1 / self.J
        weighted = self.mu * H
        self.shear = _integral(weighted, F), _integral(weighted, H)

    def curvature(self) -> PerLoad:
        """∫ H:A(F):H = ∫ μ H:H + λ/2 (J₁² + 2 J J₂) + (μ + λ/2) (J₁²/J² - 2 J₂/J)."""
        squared, twice = self.J1 * self.J1, 2 * self.J2
        bulk = self.lam / 2 * (squared + self.J * twice)
        bulk += (self.mu + self.lam / 2) * self.inverse * (self.inverse * squared - twice)
        return self.shear[1] + bulk.sum(axis=(1, 2))

    def change(self, t: PerLoad) -> PerLoad:
        """∫ ψ(F + tH) - ψ(F), with J(t)² - J² = δ(2J + δ), δ = t J₁ + t² J₂; not finite where J(t) <= 0 somewhere."""
        s = t[:, None, None]
        delta = (self.J1 + s * self.J2) * s
        bulk = self.lam / 4 * delta * (2 * self.J + delta)
        with np.errstate(invalid="ignore", divide="ignore"):
            bulk -= (self.mu + self.lam / 2) * np.log1p(delta * self.inverse)
        return t * self.shear[0] + t**2 / 2 * self.shear[1] + bulk.sum(axis=(1, 2))

    def search(self, length: PerLoad, slope: PerLoad, work: PerLoad) -> PerLoad:
        """Lengths t, halved until the energy less the load's work falls by 1e-4 t·slope; 0 where it never does."""
        for _ in range(HALVINGS):
            falls = self.change(length) - length * work <= -SUFFICIENT * length * slope
            if falls.all():
                return length
            length = np.where(falls, length, length / 2)
        return np.where(falls, length, 0.0)


def _integral(A: Gradient, B: Gradient) -> Float[np.ndarray, " L"]:
    return np.einsum("ijlqe,ijlqe->l", A, B)
