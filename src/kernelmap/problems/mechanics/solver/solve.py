"""All loads of one body: conjugate gradients with the stiffness at rest factored once, Newton for what they leave."""

import numpy as np
from jaxtyping import Bool
from scipy.sparse import csc_matrix

from kernelmap.problems.mechanics.solver.assembly import Body, Field, deformation
from kernelmap.problems.mechanics.solver.conjugate import conjugate_gradients
from kernelmap.problems.mechanics.solver.matrices import factor, stiffness
from kernelmap.problems.mechanics.solver.newton import newton

CHUNK = 16
"""Loads treated at once: enough to spread the cost of a call, few enough for the processor's cache."""


def solve(body: Body, loads: Field, start: Field) -> tuple[Field, Bool[np.ndarray, " L"]]:
    """Displacements, not a number where a load did not converge, and which loads converged.

    The starts have the prescribed displacements.
    """
    K = stiffness(body, deformation(body, np.zeros_like(start[:, :1])))
    # Single precision takes as many steps as double, faster, at contrasts such as 100; far beyond, Newton has to do it.
    rest = factor(csc_matrix(K, dtype=np.float32))
    u, converged = np.empty_like(start), np.zeros(loads.shape[1], bool)
    for first in range(0, loads.shape[1], CHUNK):
        part = slice(first, first + CHUNK)
        u[:, part], converged[part] = conjugate_gradients(body, rest, loads[:, part], start[:, part])
    for left in np.flatnonzero(~converged):
        u[:, left], converged[left] = newton(body, loads[:, left], start[:, left])
    u[:, ~converged] = np.nan
    return u, converged
