"""The layout of particles: snapshots with velocities or times; a pair for each component of a velocity."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.interpolate import CubicSpline
from scipy.spatial.distance import pdist

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel
from kernelmap.core.places import Places
from kernelmap.io.entries import (
    Entries,
    listed,
    numbers,
    require_finite,
    require_pairs,
    require_token_memory,
    sorted_by,
)
from kernelmap.io.placed import Inputs
from kernelmap.io.series.noise import errors_of
from kernelmap.io.series.times import Times, read_times
from kernelmap.operators import Interaction

RADII = 200
"""Steps of the kernel's grid, between whose points K is interpolated."""

FEWEST_TIMES = 4
"""Of a cubic spline."""


class Particles(NamedTuple):
    """Positions in S runs of T snapshots, their times (S, T) where they are known, and their shape in the file."""

    positions: Float[np.ndarray, "S T n dim"]
    times: Times | None
    shape: tuple[int, ...]

    def tokens(self, operator: Interaction, used: Bool[np.ndarray, "S T n dim"]) -> tuple[torch.Tensor, Places]:
        """(d, N), of the components of velocities that are used, and where they are."""
        S, T, n, _ = used.shape
        runs, snapshots, particles, components = np.nonzero(used)
        flat = self.positions.reshape(S * T, n, -1)
        tokens = operator.tokens_at(flat, runs * T + snapshots, particles, components)
        times, name = snapshots.astype(np.float64), "snapshot"
        if self.times is not None:
            times, name = self.times.values[runs, snapshots], "date" if self.times.dated else "t"
        return tokens, operator.places(times, particles, components, runs if S > 1 else None, name)


def interaction_context(entries: Entries) -> tuple[Context, str]:
    """v_i = 1/n Σ_j K(|x_j - x_i|) (x_j - x_i); in words, which velocities were dropped."""
    particles = read_particles(entries)
    v = _velocities(entries, particles)
    operator = _operator(entries, particles)
    measured = ~np.isnan(v)
    require_token_memory(
        int(measured.sum()),
        1,
        operator.count,
        "distances do not fit into memory. Give fewer snapshots, or write NaN into velocities at some of them.",
    )
    tokens, places = particles.tokens(operator, measured)
    informative = tokens.any(dim=1)
    dropped = listed(
        {
            "velocities is NaN": int((~measured).sum()),
            "no other particle is within the radius": int((~informative).sum()),
        }
    )
    require_pairs(int(informative.sum()), dropped)
    f = torch.from_numpy(v[measured])[informative]
    F_std = errors_of(entries, v.shape, measured)
    F_std = None if F_std is None else F_std[0, informative]
    return operator.context(tokens[informative], f, places.select(informative), F_std), dropped


def interaction_inputs(entries: Entries, kernel: Kernel) -> Inputs:
    """All velocities of new positions, between which no distance is longer than the kernel is known."""
    particles, y = read_particles(entries), kernel.y
    if y.dim != 1 or not kernel.x.is_point or float(y.points[0, 0]) != 0:
        raise InputError("the discovery is not of an interaction; give inputs laid out as its data were.")
    operator = Interaction(float(y.points[1, 0]), y.size - 1)
    longest, end = _longest(particles), float(y.points[-1, 0])
    if "radius" not in entries and longest > end * (1 + 1e-6):
        raise InputError(
            f"two particles are {longest:.6g} apart, but the kernel was seen up to {end:.6g} only: leave out what is "
            f"further away, or say by the entry radius = {end:.6g} that there is no interaction beyond."
        )
    used = np.ones(particles.positions.shape, dtype=bool)
    tokens, places = particles.tokens(operator, used)
    at, v = np.arange(used.size), entries.get("velocities")
    return Inputs(tokens.T.contiguous(), particles.shape, at, of_inputs=places, responses=v)


def read_particles(entries: Entries) -> Particles:
    given = numbers(entries, "positions")
    x, shape = given, given.shape
    if x.ndim == 2 and len(x) == np.size(entries.get("t", 0)):
        x = x[..., None]
    x = x[None] if x.ndim == 3 else x
    if x.ndim != 4 or not x.size:
        raise InputError(
            "positions must have shape (T, n, dim), T snapshots of n particles in dim dimensions, or (S, T, n, dim) "
            f"for S runs, got {shape}. One snapshot is positions[None], particles on a line are positions[..., None]."
        )
    if x.shape[2] < 2:
        raise InputError(f"positions has shape {shape}, one particle; an interaction takes two or more.")
    bad = int((~np.isfinite(x)).any(axis=(0, 1, 3)).sum())
    if bad:
        raise InputError(
            f"positions holds values that are NaN or infinite, of {bad} particle(s): where a particle is must be known "
            "in all snapshots, as it acts on the others. Leave these particles, or these snapshots, out."
        )
    return Particles(x, _times(entries, x) if "t" in entries else None, shape)


def _times(entries: Entries, x: np.ndarray) -> Times:
    """(S, T)."""
    times = read_times(entries, "t")
    (S, T), t = x.shape[:2], times.values
    if t.shape == (1, T):
        t = np.broadcast_to(t, (S, T))
    if t.shape != (S, T):
        expected = f"({T},)" if S == 1 else f"({T},) or ({S}, {T})"
        raise InputError(
            f"t must have shape {expected}, the time of every snapshot of positions, got {np.shape(entries['t'])}."
        )
    require_finite("t", t)
    if not (np.diff(t, axis=1) > 0).all():
        others = [name for name in ("positions", "velocities") if name in entries and np.ndim(entries[name]) == 3]
        raise InputError(
            "t must increase; sort the snapshots by their time, and drop times given twice.",
            sorted_by("t", entries, others, axis=0),
        )
    return Times(t, times.dated)


def _velocities(entries: Entries, particles: Particles) -> np.ndarray:
    """As measured, or the derivative of a cubic spline through the positions of each particle."""
    x, times = particles.positions, particles.times
    if "velocities" in entries:
        v = numbers(entries, "velocities")
        if v.shape != particles.shape:
            turned = v.ndim == len(particles.shape) and v.shape == particles.shape[::-1]
            shorter = len(v.shape) > 2 and v.shape[-3] == particles.shape[-3] - 1
            hint = " Its axes seem swapped." if turned else " Give t instead of differences." if shorter else ""
            raise InputError(
                f"velocities must have the shape of positions, {particles.shape}, with NaN where it was not measured, "
                f"got {v.shape}.{hint}",
                {"velocities": 'd["velocities"].T'} if turned else None,
            )
        if np.isinf(v).any():
            raise InputError(f"velocities holds {np.isinf(v).sum()} infinite value(s); write NaN where not measured.")
        return v.reshape(x.shape)
    if times is None:
        raise InputError(
            "positions come without velocities and without times: give velocities, of the same shape, or t, the time "
            "of every snapshot, from which velocities are found."
        )
    if x.shape[1] < FEWEST_TIMES:
        raise InputError(
            f"positions holds {x.shape[1]} snapshot(s); velocities are found from {FEWEST_TIMES} or more. Give more "
            "snapshots, or velocities."
        )
    return np.stack([CubicSpline(t, run)(t, 1) for t, run in zip(times.values, x, strict=True)])


def _operator(entries: Entries, particles: Particles) -> Interaction:
    """Up to the radius, by default the longest distance."""
    longest = _longest(particles)
    if not longest > 0:
        raise InputError("all particles are at the same place in every snapshot; give positions that differ.")
    given = numbers(entries, "radius") if "radius" in entries else np.asarray(longest)
    if given.size != 1 or not 0 < given.item() < np.inf:
        raise InputError(f"radius must be one positive number, in the unit of positions, got {given}.")
    return Interaction(given.item() / RADII, RADII)


def _longest(particles: Particles) -> float:
    """Distance of two particles in one snapshot."""
    _, _, n, dim = particles.positions.shape
    return max(float(pdist(x).max()) for x in particles.positions.reshape(-1, n, dim))
