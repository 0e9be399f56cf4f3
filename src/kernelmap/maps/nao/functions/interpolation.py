"""Values between the points of a grid, as weighted sums of a few of them."""

from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.spatial import Delaunay, QhullError
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid


@dataclass(frozen=True)
class Interpolation:
    """v(x_m) = Σ_k weights[m, k] v(z_nodes[m, k]); without nodes, the x are the z themselves.

    Linear in every direction on a mesh, linear on triangles between scattered points. Beyond the ends of a mesh the
    last value holds, outside scattered points that of the nearest.
    """

    nodes: Int[Tensor, "m k"] | None
    weights: Float[Tensor, "m k"] | None

    @classmethod
    def of(cls, z: Grid, x: Grid) -> "Interpolation":
        """From the points of z to those of x."""
        if x.has_points_of(z):
            return cls(None, None)
        known, wanted = z.points.cpu().numpy(), x.points.cpu().numpy()
        axes, places = zip(*(np.unique(column, return_inverse=True) for column in known.T), strict=True)
        shape = tuple(len(axis) for axis in axes)
        if prod(shape) == len(known):
            order = np.empty(shape, dtype=int)
            order[places] = np.arange(len(known))
            nodes, weights = _on_mesh(axes, order, wanted)
        else:
            nodes, weights = _on_triangles(known, wanted)
        return cls(torch.from_numpy(nodes).to(z.points.device), torch.from_numpy(weights).to(z.points.device))

    def apply(self, v: Float[Tensor, "*b n k"]) -> Float[Tensor, "*b m k"]:
        if self.nodes is None or self.weights is None:
            return v
        weights = self.weights.to(v)
        return sum(
            (weights[:, [i]] * v[..., self.nodes[:, i], :] for i in range(1, weights.shape[1])),
            weights[:, [0]] * v[..., self.nodes[:, 0], :],
        )


def _on_mesh(axes: tuple[np.ndarray, ...], order: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of the cell around every point, and the products of its linear shape functions."""
    left, share = [], []
    for axis, t in zip(axes, at.T, strict=True):
        if len(axis) == 1:
            left.append(np.zeros(len(t), dtype=int))
            share.append(np.zeros(len(t)))
            continue
        i = np.clip(np.searchsorted(axis, t, side="right") - 1, 0, len(axis) - 2)
        left.append(i)
        share.append(np.clip((t - axis[i]) / (axis[i + 1] - axis[i]), 0, 1))
    nodes, weights = [], []
    for corner in product((0, 1), repeat=len(axes)):
        where = tuple(np.minimum(i + c, n - 1) for i, c, n in zip(left, corner, order.shape, strict=True))
        nodes.append(order[where])
        weights.append(np.prod([s if c else 1 - s for s, c in zip(share, corner, strict=True)], axis=0))
    return np.stack(nodes, axis=1), np.stack(weights, axis=1)


def _on_triangles(known: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of the simplex around every point, and its barycentric coordinates there."""
    try:
        triangles = Delaunay(known)
    except QhullError as error:
        raise InputError("the points of a grid lie on one line; a kernel between them needs a plane mesh.") from error
    simplex = triangles.find_simplex(at)
    transform = triangles.transform[simplex]
    first = np.einsum("mij,mj->mi", transform[:, :-1], at - transform[:, -1])
    weights = np.concatenate([first, 1 - first.sum(axis=1, keepdims=True)], axis=1)
    nodes = triangles.simplices[simplex].astype(np.int64)
    for m in np.flatnonzero(simplex < 0):
        nodes[m] = np.square(known - at[m]).sum(axis=1).argmin()
        weights[m] = np.eye(weights.shape[1])[0]
    return nodes, weights
