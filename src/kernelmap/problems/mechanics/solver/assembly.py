"""A body: a mesh with a modulus in every cell. Its energy and internal forces, for many loads at once.

Displacements of L loads are arrays (2, L, n): component, load, node. Gradients are (2, 2, L, q, E): component,
direction, load, quadrature point, cell; the cells of a mesh's patches follow one another.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float

from kernelmap.problems.mechanics.solver import material
from kernelmap.problems.mechanics.solver.elements import Mesh

Field = Float[np.ndarray, "2 L n"]
Gradient = Float[np.ndarray, "2 2 L q E"]
PerLoad = Float[np.ndarray, " L"]


@dataclass(frozen=True)
class Body:
    """`modulus` is Young's, cell by cell; `free` marks the displacements that are not prescribed."""

    mesh: Mesh
    modulus: Float[np.ndarray, " cells"]
    free: Bool[np.ndarray, "2 n"]

    @cached_property
    def lame(self) -> tuple[Float[np.ndarray, " E"], Float[np.ndarray, " E"]]:
        """μ and λ of the cells, in the order of the patches."""
        return material.lame(self.modulus[np.concatenate([patch.cells for patch in self.mesh.patches])])

    @cached_property
    def weighted_lame(self) -> tuple[Float[np.ndarray, "q E"], Float[np.ndarray, "q E"]]:
        """μ and λ times the quadrature weights: what is linear in them comes out integrated."""
        w = self.mesh.patches[0].shape.weights[:, None] * self.mesh.width**2
        mu, lam = self.lame
        return w * mu, w * lam

    @cached_property
    def sums(self) -> list[sp.csr_matrix]:
        """Per patch, the sum over cells of values at their nodes: (n, a E)."""
        n = len(self.mesh.points)
        return [
            sp.csr_matrix((np.ones(p.nodes.size), (p.nodes.T.ravel(), np.arange(p.nodes.size))), (n, p.nodes.size))
            for p in self.mesh.patches
        ]


def gradient(body: Body, u: Field) -> Gradient:
    """∂u_i/∂x_j at the quadrature points."""
    parts = []
    for patch in body.mesh.patches:
        G = patch.shape.gradients / body.mesh.width
        _, a, q = G.shape
        nodal = np.take(u, patch.nodes.T, axis=2)
        H = G.transpose(0, 2, 1).reshape(2 * q, a) @ nodal
        parts.append(H.reshape(2, u.shape[1], 2, q, len(patch.cells)).transpose(0, 2, 1, 3, 4))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)


def deformation(body: Body, u: Field) -> Gradient:
    """F = I + ∇u."""
    F = gradient(body, u)
    F[0, 0] += 1
    F[1, 1] += 1
    return F


def energy(body: Body, F: Gradient) -> PerLoad:
    """∫ ψ(F), infinite where a quadrature point is inverted."""
    return material.energy(F, *body.weighted_lame).sum(axis=(1, 2))


def internal_forces(body: Body, F: Gradient) -> Field:
    """∫ P(F) : ∇φ for the shape function φ of every node, in each direction."""
    P = material.stress(F, *body.weighted_lame)
    loads, n = F.shape[2], len(body.mesh.points)
    total = np.zeros((n, 2 * loads))
    start = 0
    for patch, gather in zip(body.mesh.patches, body.sums, strict=True):
        stop = start + len(patch.cells)
        G = patch.shape.gradients / body.mesh.width
        part = P[..., start:stop]
        nodal = G[0] @ part[:, 0] + G[1] @ part[:, 1]
        total += gather @ nodal.reshape(2 * loads, patch.nodes.size).T
        start = stop
    return np.ascontiguousarray(total.T).reshape(2, loads, n)
