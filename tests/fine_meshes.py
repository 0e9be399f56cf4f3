"""Darcy flow on a rectangle, solved on a mesh some times finer than the one it is then sampled on."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csc_array, diags_array, eye_array, kron
from scipy.sparse.linalg import splu

from kernelmap.core import grids
from kernelmap.core.context import Context


@dataclass(frozen=True)
class Flow:
    """Nodes of both axes, and source and pressure of every pair there; sources are zero on the boundary."""

    axes: tuple[np.ndarray, np.ndarray]
    source: np.ndarray
    pressure: np.ndarray

    def context(self, pairs: slice, to_pressure: bool) -> Context:
        mesh = grids.mesh(*(torch.from_numpy(axis) for axis in self.axes))
        g, p = (torch.from_numpy(v[pairs].reshape(len(v[pairs]), -1).T.copy()) for v in (self.source, self.pressure))
        return Context(*((g, p) if to_pressure else (p, g)), mesh, mesh)


def flow(nodes: tuple[int, int], sides: tuple[float, float], finer: int = 8, pairs: int = 80, seed: int = 0) -> Flow:
    """A smooth lognormal permeability, and sources that are random sums of waves."""
    rng = np.random.default_rng(seed)
    axes = [np.linspace(0, side, finer * (n - 1) + 1) for side, n in zip(sides, nodes, strict=True)]
    b = np.exp(0.5 * waves(rng, axes, 1, 2.0)[0])
    g = waves(rng, axes, pairs, 1.5)
    p = np.zeros_like(g)
    inner = np.s_[:, 1:-1, 1:-1]
    p[inner] = splu(stiffness(b, axes)).solve(g[inner].reshape(pairs, -1).T).T.reshape(g[inner].shape)
    g[:, [0, -1]], g[:, :, [0, -1]] = 0, 0
    some = np.s_[:, ::finer, ::finer]
    return Flow((axes[0][::finer], axes[1][::finer]), g[some], p[some])


def waves(rng: np.random.Generator, axes: list[np.ndarray], count: int, decay: float) -> np.ndarray:
    """Σ_kl ξ_kl (1 + k² + l²)^-decay cos(π k x / a) cos(π l y / b), of mean square 1."""
    k = np.arange(12)
    cosines = [np.cos(np.pi * k * axis[:, None] / axis[-1]) for axis in axes]
    size = (1.0 + k[:, None] ** 2 + k**2) ** -decay
    fields = cosines[0] @ (rng.normal(size=(count, 12, 12)) * size) @ cosines[1].T
    return fields / np.sqrt((fields**2).mean(axis=(1, 2), keepdims=True))


def stiffness(b: np.ndarray, axes: list[np.ndarray]) -> csc_array:
    """-div(b grad) between inner nodes: Σ Dᵀ diag(b on faces) D over both axes."""
    steps, shape = [axis[1] for axis in axes], b.shape
    faces = ((b[1:, 1:-1] + b[:-1, 1:-1]) / 2, (b[1:-1, 1:] + b[1:-1, :-1]) / 2)
    eyes = [eye_array(n - 2) for n in shape]
    parts = []
    for axis, n in enumerate(shape):
        D = (eye_array(n - 1, n - 2) - eye_array(n - 1, n - 2, k=-1)) / steps[axis]
        D = kron(D, eyes[1]) if axis == 0 else kron(eyes[0], D)
        parts.append(D.T @ diags_array(faces[axis].ravel()) @ D)
    return csc_array(parts[0] + parts[1])
