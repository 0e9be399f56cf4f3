"""The conservative five-point scheme for -div(b grad p) = g on n x n nodes, p = 0 on the boundary ring.

With the value b_ij of b on the face between the nodes i and j, and h = 1/(n-1),

    (A p)_i = 1/h² Σ_(j beside i) b_ij (p_i - p_j) = g_i       at the m² interior nodes, m = n - 2

A is symmetric, positive definite, and banded with m diagonals above the main one.
"""

from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_solve_banded, cholesky_banded
from scipy.sparse import csr_array, dia_array, triu

from kernelmap.core.errors import InputError
from kernelmap.problems.darcy.fields import check_nodes

FaceMean = Literal["arithmetic", "harmonic"]
"""The value of b on a face, from its values at the two nodes."""


def interior(n: int) -> Int[np.ndarray, " inside"]:
    """The interior nodes' places among all n² nodes."""
    return np.arange(n**2).reshape(n, n)[1:-1, 1:-1].ravel()


def upper_bands(b: Float[np.ndarray, "n n"], mean: FaceMean = "arithmetic") -> Float[np.ndarray, "n-1 inside"]:
    """A in LAPACK's banded form: row m + i - j, column j holds A[i, j]."""
    n = len(b)
    check_nodes(n)
    if not (np.isfinite(b) & (b > 0)).all():
        raise InputError("a permeability must be finite and positive at every node.")
    down, right = _between(b[:-1, 1:-1], b[1:, 1:-1], mean), _between(b[1:-1, :-1], b[1:-1, 1:], mean)
    m = n - 2
    bands = np.zeros((m + 1, m, m))
    bands[m] = down[:-1] + down[1:] + right[:, :-1] + right[:, 1:]
    bands[m - 1, :, 1:] -= right[:, 1:-1]
    bands[0, 1:, :] -= down[1:-1]
    return bands.reshape(m + 1, m * m) * (n - 1) ** 2


def stiffness(b: Float[np.ndarray, "n n"], mean: FaceMean = "arithmetic") -> csr_array:
    """A as a sparse matrix."""
    bands = upper_bands(b, mean)
    m = len(b) - 2
    upper = csr_array(dia_array((bands, np.arange(m, -1, -1)), (m**2, m**2)))
    upper.eliminate_zeros()
    return csr_array(upper + triu(upper, 1).T)


def pressures(
    b: Float[np.ndarray, "n n"], g: Float[np.ndarray, "count rows columns"], mean: FaceMean = "arithmetic"
) -> Float[np.ndarray, "count rows columns"]:
    """p of one permeability for several sources; a source's values on the boundary ring play no part."""
    if g.shape[1:] != b.shape:
        raise InputError(
            f"the sources are on {g.shape[1:]} nodes, the permeability on {b.shape}; give both on one grid."
        )
    inner = g[:, 1:-1, 1:-1].reshape(len(g), -1).T
    p = np.zeros(g.shape)
    p[:, 1:-1, 1:-1] = _solve(b, inner, mean).T.reshape(len(g), *(k - 2 for k in b.shape))
    return p


def stiffness_kernel(b: Float[np.ndarray, "n n"], mean: FaceMean = "arithmetic") -> Float[np.ndarray, "nodes nodes"]:
    """K with g = h² Σ K p: A / h², and zero on the ring, where p says nothing of K nor of g."""
    return _on_all_nodes(stiffness(b, mean).toarray() * (len(b) - 1) ** 2, len(b))


def green_kernel(b: Float[np.ndarray, "n n"], mean: FaceMean = "arithmetic") -> Float[np.ndarray, "nodes nodes"]:
    """K with p = h² Σ K g: the Green's function A⁻¹ / h², zero on the ring."""
    return _on_all_nodes(_solve(b, np.eye((len(b) - 2) ** 2), mean) * (len(b) - 1) ** 2, len(b))


def _between(left: np.ndarray, right: np.ndarray, mean: FaceMean) -> np.ndarray:
    return (left + right) / 2 if mean == "arithmetic" else 2 * left * right / (left + right)


def _solve(b: np.ndarray, g: Float[np.ndarray, "inside count"], mean: FaceMean) -> Float[np.ndarray, "inside count"]:
    return cho_solve_banded((cholesky_banded(upper_bands(b, mean)), False), g)


def _on_all_nodes(values: Float[np.ndarray, "inside inside"], n: int) -> Float[np.ndarray, "nodes nodes"]:
    kernel = np.zeros((n**2, n**2))
    kernel[np.ix_(interior(n), interior(n))] = values
    return kernel
