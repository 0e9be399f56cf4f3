"""The sparse matrices of a body: its stiffness over the free displacements, and the mass of its mesh."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import SuperLU, splu

from kernelmap.problems.mechanics.solver import material
from kernelmap.problems.mechanics.solver.assembly import Body, Field, Gradient
from kernelmap.problems.mechanics.solver.elements import Mesh


def stiffness(body: Body, F: Gradient) -> sp.csc_matrix:
    """K = ∫ ∇φ : A(F) : ∇φ over the free displacements, for one load."""
    A = material.tangent(F[:, :, 0], *body.weighted_lame)
    number = np.where(body.free, np.cumsum(body.free).reshape(body.free.shape) - 1, -1)
    entries, rows, columns = [], [], []
    start = 0
    for patch in body.mesh.patches:
        (E, a), G = patch.nodes.shape, patch.shape.gradients / body.mesh.width
        pairs = np.einsum("jaq,lbq->jlqab", G, G).reshape(-1, a * a)
        part = A[..., start : start + E].transpose(0, 2, 5, 1, 3, 4)
        entries.append((part.reshape(4 * E, -1) @ pairs).ravel())
        freedoms = number[:, patch.nodes]
        shape = (2, 2, E, a, a)
        rows.append(np.broadcast_to(freedoms[:, None, :, :, None], shape).ravel())
        columns.append(np.broadcast_to(freedoms[None, :, :, None, :], shape).ravel())
        start += E
    values, i, j = (np.concatenate(parts) for parts in (entries, rows, columns))
    kept = (i >= 0) & (j >= 0)
    return sp.csc_matrix((values[kept], (i[kept], j[kept])), shape=2 * (np.count_nonzero(body.free),))


def factor(K: sp.csc_matrix) -> SuperLU:
    """LU of a symmetric matrix without pivoting, so that the fill of the symmetric ordering is kept."""
    return splu(K, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0, options={"SymmetricMode": True})


def body_forces(mesh: Mesh, f: Field) -> Field:
    """∫ f φ for every shape function φ, with f interpolated between its values at the nodes."""
    n = len(mesh.points)
    M = sp.csr_matrix((n, n))
    for patch in mesh.patches:
        shape = (*patch.nodes.shape, patch.nodes.shape[1])
        values = np.broadcast_to(patch.shape.mass * mesh.width**2, shape)
        i, j = np.broadcast_to(patch.nodes[:, :, None], shape), np.broadcast_to(patch.nodes[:, None, :], shape)
        M = M + sp.csr_matrix((values.ravel(), (i.ravel(), j.ravel())), shape=(n, n))
    return np.ascontiguousarray((M @ f.reshape(-1, n).T).T).reshape(f.shape)
