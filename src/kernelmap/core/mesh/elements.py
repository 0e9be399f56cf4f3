"""Shape functions of finite elements on the unit square: quadrilaterals of any degree, and pairs of triangles."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Shape:
    """A nodes and q quadrature points on the unit cell: ∫ v ≈ Σ_q weights[q] v(q); mass[a, b] = ∫ φ_a φ_b."""

    gradients: Float[np.ndarray, "2 a q"]
    weights: Float[np.ndarray, " q"]
    mass: Float[np.ndarray, "a a"]


def quadrilateral(degree: int) -> Shape:
    """Products of Lagrange polynomials on equidistant nodes, with (degree+1)² Gauss points."""
    t, w = np.polynomial.legendre.leggauss(degree + 1)
    t, w = (t + 1) / 2, w / 2
    nodes = np.linspace(0, 1, degree + 1)
    powers = np.arange(degree + 1)
    coefficients = np.linalg.inv(nodes[:, None] ** powers)
    values = (t[:, None] ** powers) @ coefficients
    slopes = (powers * t[:, None] ** np.maximum(powers - 1, 0)) @ coefficients

    def products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.einsum("pi,qj->ijpq", A, B).reshape((degree + 1) ** 2, -1)

    weights = np.outer(w, w).ravel()
    phi = products(values, values)
    return Shape(np.stack([products(slopes, values), products(values, slopes)]), weights, (phi * weights) @ phi.T)


def triangles(falling: bool) -> Shape:
    """The unit square cut by its diagonal, falling "\\" or rising "/", with one point per triangle."""
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    parts = ([0, 2, 1], [3, 1, 2]) if falling else ([0, 2, 3], [0, 3, 1])
    gradients, mass = np.zeros((2, 4, 2)), np.zeros((4, 4))
    for q, part in enumerate(parts):
        barycentric = np.linalg.inv(np.column_stack([np.ones(3), corners[part]]))
        gradients[:, part, q] = barycentric[1:]
        mass[np.ix_(part, part)] += (1 + np.eye(3)) / 24
    return Shape(gradients, np.full(2, 0.5), mass)
