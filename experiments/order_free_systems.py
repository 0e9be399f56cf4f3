"""Systems for the order-free NAO: porous media on any mesh, and specimens under loads of their own."""

from pathlib import Path

import numpy as np
import torch
from scipy.interpolate import CubicSpline
from torch import Tensor

from kernelmap.core.grids import Grid, from_points, rectangle
from kernelmap.core.systems import SystemSet
from kernelmap.problems.darcy import green_kernel, microstructures, pressures, sources
from kernelmap.problems.mechanics import ForceField, mnist
from kernelmap.problems.mechanics.forces import evaluate
from kernelmap.problems.mechanics.specimen import respond

FIRST_TEST, TESTS = 90, 10


def uneven_meshes() -> dict[str, tuple[int, np.ndarray]]:
    """31 of n nodes in each direction.

    Graded: steps go smoothly from 1/60 at the boundary to 1/20 in the middle. Jittered: even steps of 1/30, every node
    moved by up to a quarter of them. Random: any of 61 nodes, with gaps of up to 1/12.
    """
    s, random = np.linspace(0, 1, 31), np.random.default_rng(0)
    inner = random.choice(np.arange(1, 60), 29, replace=False)
    moved = np.arange(4, 120, 4) + random.integers(-1, 2, 29)
    return {
        "graded 31 x 31": (121, np.round(120 * (s - 0.08 * np.sin(2 * np.pi * s))).astype(int)),
        "jittered 31 x 31": (121, np.array([0, *moved, 120])),
        "random 31 x 31": (61, np.sort([0, 60, *inner])),
    }


MESHES = {f"{n} x {n}": (n, np.arange(n)) for n in (21, 41)} | uneven_meshes()
"""Nodes in each direction that Darcy flow is solved on, and those of them that are measured."""


def interior(n: int) -> Tensor:
    inside = torch.zeros(n, n, dtype=torch.bool)
    inside[1:-1, 1:-1] = True
    return inside.flatten()


def on_nodes(n: int, nodes: np.ndarray, pairs: range) -> SystemSet:
    """Test systems with sources of their own, solved on n x n nodes and measured at some of them."""
    axis = from_points(np.linspace(0, 1, n)[nodes])
    product = torch.cartesian_prod(axis.points[:, 0], axis.points[:, 0])
    uneven = Grid(product, torch.outer(axis.weights, axis.weights).flatten())
    grid = rectangle(n) if len(nodes) == n else uneven
    b = microstructures(n, range(FIRST_TEST, FIRST_TEST + TESTS))
    g = np.stack([sources(n, pairs, system=FIRST_TEST + i) for i in range(TESTS)])
    p = np.stack([pressures(*pair) for pair in zip(b, g, strict=True)])
    u, f = (torch.from_numpy(v[..., nodes, :][..., nodes].reshape(TESTS, len(pairs), -1)) for v in (g, p))
    flat = (nodes[:, None] * n + nodes).ravel()
    kernels = torch.from_numpy(np.stack([green_kernel(each)[np.ix_(flat, flat)] for each in b])) if n == 21 else None
    return SystemSet(tuple(f"test-{i}" for i in range(TESTS)), u, f, grid, grid, kernels)


def missed_between(n: int, nodes: np.ndarray) -> dict[str, float]:
    """What is missed of sources between the measured nodes by straight lines and by cubic splines through these."""
    g, seen = sources(n, range(100), system=FIRST_TEST), np.linspace(0, 1, n)[nodes]
    lines = np.stack([np.interp(np.linspace(0, 1, n), seen, e) for e in np.eye(len(nodes))], axis=1)
    missed = {}
    for name, A in (("lines", lines), ("splines", through_nodes(n, nodes))):
        between = A @ g[:, nodes][:, :, nodes] @ A.T
        missed[name] = round(100 * float(np.linalg.norm(between - g) / np.linalg.norm(g)), 2)
    return missed


def through_nodes(n: int, nodes: np.ndarray) -> np.ndarray:
    """The matrix that takes values at some of n nodes to those of the cubic spline at all."""
    every = np.linspace(0, 1, n)
    return CubicSpline(every[nodes], np.eye(len(nodes)))(every)


def splined(systems: SystemSet, n: int, nodes: np.ndarray) -> SystemSet:
    """Fields measured at some of n x n nodes, at all of them by cubic splines."""
    A, shape = torch.from_numpy(through_nodes(n, nodes)), (len(nodes), len(nodes))
    u, f = ((A @ values.unflatten(-1, shape) @ A.mT).flatten(-2) for values in (systems.u, systems.f))
    return SystemSet(systems.names, u, f, rectangle(n), rectangle(n))


def with_own_loads(count: int, path: Path) -> SystemSet:
    """The first training specimens, each under 120 loads that no other has; kept at `path`."""
    if path.exists():
        return SystemSet.load(path)
    chosen = np.flatnonzero(~mnist().for_testing("id"))[:count]
    forces, displacements = [], []
    for index in chosen:
        coefficients = ForceField(seed=1000 + int(index)).draw(120, 0)
        u, converged = respond(mnist().images[index], "q2-28", coefficients)
        assert converged.all()
        forces.append(evaluate(coefficients, np.linspace(0, 1, 29)).transpose(1, 0, 2).reshape(120, -1))
        displacements.append(u.reshape(120, -1))
    grid = rectangle(29).with_components(2)
    f, u = (torch.from_numpy(np.stack(values)).float() for values in (displacements, forces))
    systems = SystemSet(
        tuple(f"own-{i}" for i in chosen), u, f, grid, grid, about={"problem": "mechanics", "own": True}
    )
    systems.save(path)
    return systems
