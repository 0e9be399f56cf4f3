"""The error below which no kernel gets that acts linearly on the load: that of a specimen's best linear operator."""

import numpy as np
from jaxtyping import Float, UInt8

from kernelmap.problems.mechanics import ForceField, respond
from kernelmap.problems.mechanics.forces import evaluate
from kernelmap.problems.mechanics.plan import ELEMENTS
from kernelmap.problems.mechanics.solver.assembly import deformation
from kernelmap.problems.mechanics.solver.elements import read_elements
from kernelmap.problems.mechanics.solver.matrices import body_forces, factor, stiffness
from kernelmap.problems.mechanics.specimen import clamped

STREAM = 2
"""Of random numbers: loads that are in no data set."""

FITTED, FRESH = 1000, 200
PENALTIES = (30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)


def linear_floor(
    image: UInt8[np.ndarray, "n n"], fitted: int = FITTED, fresh: int = FRESH, elements: str = ELEMENTS
) -> dict[str, float]:
    """Relative errors on fresh loads: of the linearisation at rest, of least squares, and of the floor,

        u = L₀ f + Σ_k D_k ξ_k :   Σ_j |u_j - L₀ f_j - Σ_k D_k ξ_jk|² / |u_j|² + λ Σ_k |D_k|² / σ_k  least,

    with the linearisation L₀, the loads' standard normal coefficients ξ and their deviations σ. λ is chosen on a fifth
    of the fitted pairs. Plain least squares has 448 unknowns for every value of u, and fits the nonlinearity as noise.
    """
    forces = ForceField()
    drawn = forces.draw(fitted + fresh, STREAM)
    u, converged = respond(image, elements, drawn)
    at_rest = linearised(image, drawn, elements)
    u, at_rest, drawn = (part[converged].reshape(converged.sum(), -1) for part in (u, at_rest, drawn))
    sigma = np.tile(forces.deviations.ravel(), 2)
    xi, sigma = drawn[:, sigma > 0] / sigma[sigma > 0], sigma[sigma > 0]
    w = 1 / np.linalg.norm(u, axis=1, keepdims=True)

    def error(rest: np.ndarray, fit: slice, test: slice, penalty: float) -> float:
        A, y = (xi * w)[fit], ((u - rest) * w)[fit]
        ridge = penalty * (w[fit] ** 2).mean() * sigma.max() / sigma
        D = np.linalg.solve(A.T @ A + np.diag(ridge), A.T @ y)
        return float(np.linalg.norm((u - rest - xi @ D)[test] * w[test], axis=1).mean())

    most, rest, new = slice(fitted * 4 // 5), slice(fitted * 4 // 5, fitted), slice(fitted, None)
    chosen = min(PENALTIES, key=lambda penalty: error(at_rest, most, rest, penalty))
    return {
        "at_rest": float(np.linalg.norm((u - at_rest)[new] * w[new], axis=1).mean()),
        "least_squares": error(np.zeros_like(u), slice(fitted), new, 0.0),
        "floor": error(at_rest, slice(fitted), new, chosen),
        "penalty": chosen,
    }


def linearised(
    image: UInt8[np.ndarray, "n n"], coefficients: Float[np.ndarray, "L 2 k k"], elements: str = ELEMENTS
) -> Float[np.ndarray, "L 2 m"]:
    """The linear responses at rest, at the corners of the pixels."""
    mesh = read_elements(elements)
    body = clamped(image, mesh)
    loads = body_forces(mesh, evaluate(coefficients, np.linspace(0, 1, mesh.degree * mesh.cells + 1)))
    rest = factor(stiffness(body, deformation(body, np.zeros((2, 1, len(mesh.points))))))
    u = np.zeros_like(loads)
    u.transpose(1, 0, 2)[:, body.free] = rest.solve(loads.transpose(1, 0, 2)[:, body.free].T).T
    return u[:, :, mesh.corners(len(image))].transpose(1, 0, 2)
