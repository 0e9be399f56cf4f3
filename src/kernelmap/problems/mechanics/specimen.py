"""A bitmap as a clamped body on the unit square, and its displacement under body forces."""

import numpy as np
from jaxtyping import Bool, Float, UInt8

from kernelmap.problems.mechanics.forces import evaluate
from kernelmap.problems.mechanics.images import modulus
from kernelmap.problems.mechanics.solver.assembly import Body
from kernelmap.problems.mechanics.solver.elements import Mesh, read_elements
from kernelmap.problems.mechanics.solver.matrices import body_forces
from kernelmap.problems.mechanics.solver.solve import solve


def clamped(image: UInt8[np.ndarray, "n n"], mesh: Mesh) -> Body:
    """Zero displacement on the whole boundary; every pixel is one cell or a square of cells."""
    mesh.corners(len(image))
    per_pixel = np.ones(2 * (mesh.cells // len(image),))
    free = np.ones((2, len(mesh.points)), bool)
    free[:, mesh.on("left", "right", "bottom", "top")] = False
    return Body(mesh, np.kron(modulus(image), per_pixel).ravel(), free)


def respond(
    image: UInt8[np.ndarray, "n n"], elements: str, forces: Float[np.ndarray, "L 2 k k"]
) -> tuple[Float[np.ndarray, "L 2 m"], Bool[np.ndarray, " L"]]:
    """Displacements at the m = (n+1)² corners of the pixels, and which loads converged (the others are NaN)."""
    mesh = read_elements(elements)
    loads = body_forces(mesh, evaluate(forces, np.linspace(0, 1, mesh.degree * mesh.cells + 1)))
    u, converged = solve(clamped(image, mesh), loads, np.zeros_like(loads))
    return u[:, :, mesh.corners(len(image))].transpose(1, 0, 2), converged
