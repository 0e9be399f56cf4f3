"""Preconditioned nonlinear conjugate gradients, many loads of a body at once."""

from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse.linalg import SuperLU

from kernelmap.problems.mechanics.solver.assembly import Body, Field, PerLoad, deformation, gradient, internal_forces
from kernelmap.problems.mechanics.solver.line import Lines

STEPS = 60
TOLERANCE = 1e-6

Free = Float[np.ndarray, "L freedoms"]


@dataclass
class _State:
    """Loads under way, one row each: the change x from the start, residual r, its size rᵀK₀⁻¹r, direction d."""

    index: Int[np.ndarray, " L"]
    first: PerLoad
    size: PerLoad
    load: Free
    x: Free
    r: Free
    d: Free

    def keep(self, rows: Bool[np.ndarray, " L"]) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[rows])


def conjugate_gradients(body: Body, rest: SuperLU, loads: Field, start: Field) -> tuple[Field, Bool[np.ndarray, " L"]]:
    """The minima of Π(u) = ∫ ψ(I + ∇u) - load·u, from starts that have the prescribed displacements.

    The preconditioner is the factored stiffness at rest, K₀: the first direction is the linear solution, the next ones
    are Polak-Ribière's with β >= 0. The step rᵀd / dᵀK(u)d is halved until Π falls enough, and Π counts as infinite
    where an element is inverted. A load has converged, and is dropped, when √(rᵀK₀⁻¹r) is 1e-6 of its first value.
    Returns u and which loads converged.
    """
    u, converged = start.copy(), np.zeros(loads.shape[1], bool)
    F = deformation(body, start)
    load = _free(body, loads)
    r = load - _free(body, internal_forces(body, F))
    z = _preconditioned(rest, r)
    s = _State(np.arange(len(load)), _dot(r, z), _dot(r, z), load, np.zeros_like(load), r, z)
    for step in range(STEPS + 1):
        # A factor of single precision need not be positive, and a negative size is no small one.
        done = np.abs(s.size) <= TOLERANCE**2 * s.first
        converged[s.index[done]] = True
        u[:, s.index[done]] += _field(body, s.x[done])
        if done.any():
            s.keep(~done)
            F = F[:, :, ~done]
        if not len(s.index) or step == STEPS:
            break
        H = gradient(body, _field(body, s.d))
        lines = Lines(body, F, H)
        slope, curvature = _dot(s.r, s.d), lines.curvature()
        newton = np.divide(slope, curvature, out=np.ones_like(slope), where=curvature > 0)
        length = lines.search(newton, slope, work=_dot(s.load, s.d))
        s.x = s.x + length[:, None] * s.d
        F += length[:, None, None] * H
        r = s.load - _free(body, internal_forces(body, F))
        z = _preconditioned(rest, r)
        size = _dot(r, z)
        beta = np.maximum(0, (size - _dot(s.r, z)) / s.size)
        d = z + beta[:, None] * s.d
        s.r, s.size, s.d = r, size, np.where((_dot(r, d) > 0)[:, None], d, z)
    return u, converged


def _preconditioned(rest: SuperLU, r: Free) -> Free:
    """K₀⁻¹ r, to the precision of the factors."""
    return rest.solve(r.T.astype(np.float32)).T.astype(float)


def _free(body: Body, u: Field) -> Free:
    return u.transpose(1, 0, 2)[:, body.free]


def _field(body: Body, x: Free) -> Field:
    u = np.zeros((2, len(x), body.free.shape[1]))
    u.transpose(1, 0, 2)[:, body.free] = x
    return u


def _dot(a: Free, b: Free) -> PerLoad:
    return np.einsum("lf,lf->l", a, b)
