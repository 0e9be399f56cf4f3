"""Damped Newton: one load at a time, with a new factorisation in every step."""

import numpy as np
from jaxtyping import Float

from kernelmap.problems.mechanics.solver.assembly import Body, deformation, gradient, internal_forces
from kernelmap.problems.mechanics.solver.line import Lines
from kernelmap.problems.mechanics.solver.matrices import factor, stiffness

STEPS = 60
TOLERANCE = 1e-10


def newton(
    body: Body, load: Float[np.ndarray, "2 n"], start: Float[np.ndarray, "2 n"]
) -> tuple[Float[np.ndarray, "2 n"], bool]:
    """The minimum of Π(u) = ∫ ψ(I + ∇u) - load·u, from a start that has the prescribed displacements.

    Where the stiffness is not positive along the Newton step, the stiffness at rest takes its place. Returns u, and
    whether it converged: the last full step was at most 1e-10 of the displacement.
    """
    u = start[:, None].copy()
    F = deformation(body, u)
    at_rest = deformation(body, np.zeros_like(u))
    for _ in range(STEPS):
        r = (load - internal_forces(body, F)[:, 0])[body.free]
        step = factor(stiffness(body, F)).solve(r)
        if r @ step < 0:
            step = factor(stiffness(body, at_rest)).solve(r)
        d = np.zeros_like(u)
        d[:, 0][body.free] = step
        if np.linalg.norm(d) <= TOLERANCE * np.linalg.norm(u + d):
            return (u + d)[:, 0], True
        H = gradient(body, d)
        length = Lines(body, F, H).search(np.ones(1), np.array([r @ step]), np.array([np.vdot(load, d)]))
        if not length:
            break
        u += length * d
        F += length * H
    return u[:, 0], False
