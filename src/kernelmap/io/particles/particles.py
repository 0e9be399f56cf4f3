"""Particles of a file: where each is in every snapshot, and when."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.spatial.distance import pdist
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.core.places import Places
from kernelmap.io.entries import Entries, numbers, require_finite, sorted_by
from kernelmap.io.series.times import Times, read_times
from kernelmap.operators import Interaction


class Particles(NamedTuple):
    """Positions in S runs of T snapshots, their times (S, T) where they are known, and their shape in the file."""

    positions: Float[np.ndarray, "S T n dim"]
    times: Times | None
    shape: tuple[int, ...]

    def tokens(self, operator: Interaction, used: Bool[np.ndarray, "S T n dim"]) -> Float[Tensor, "d N"]:
        """Of the components of velocities that are used."""
        S, T, n, dim = used.shape
        runs, snapshots, particles, components = np.nonzero(used)
        return operator.tokens_at(self.positions.reshape(S * T, n, dim), runs * T + snapshots, particles, components)

    def places(self, used: Bool[np.ndarray, "S T n dim"]) -> Places:
        """Where they are."""
        runs, snapshots, particles, components = np.nonzero(used)
        times, name = snapshots.astype(np.float64), "snapshot"
        if self.times is not None:
            times, name = self.times.values[runs, snapshots], "date" if self.times.dated else "t"
        return Interaction.places(times, particles, components, runs if len(used) > 1 else None, name)

    def longest(self) -> float:
        """Distance of two particles in one snapshot."""
        _, _, n, dim = self.positions.shape
        return max(float(pdist(x).max()) for x in self.positions.reshape(-1, n, dim))


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
