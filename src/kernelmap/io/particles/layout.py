"""The layout of particles: snapshots with velocities or times; a pair for each component of a velocity."""

from functools import reduce

import numpy as np
import torch

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel
from kernelmap.io.entries import Entries, listed, numbers, require_pairs, require_token_memory
from kernelmap.io.particles.particles import Particles, read_particles
from kernelmap.io.particles.ways import mean_velocities, ways
from kernelmap.io.placed import Inputs
from kernelmap.io.series.noise import errors_of
from kernelmap.operators import Interaction

RADII = 200
"""Steps of the kernel's grid, between whose points K is interpolated."""


def interaction_context(entries: Entries) -> tuple[Context, str]:
    """v_i = 1/n Σ_j K(|x_j - x_i|) (x_j - x_i); in words, which velocities were dropped."""
    particles = read_particles(entries)
    if "velocities" in entries:
        v, stages = _velocities(entries, particles), [(1.0, particles)]
    elif "f_std" in entries:
        raise InputError("f_std is the error of each of the velocities, which are not given; leave it out.")
    else:
        v, stages = mean_velocities(particles), ways(particles)
    # Between snapshots particles come closer than they are in them, which predictions measure.
    operator = _operator(entries, max(particles.longest(), *(at.longest() for _, at in stages)))
    measured = ~np.isnan(v)
    require_token_memory(
        int(measured.sum()),
        1,
        operator.count,
        "distances do not fit into memory. Give fewer snapshots, or write NaN into velocities at some of them.",
    )
    tokens = reduce(torch.add, (weight * at.tokens(operator, measured) for weight, at in stages))
    places = stages[0][1].places(measured)
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
    longest, end = particles.longest(), float(y.points[-1, 0])
    if "radius" not in entries and longest > end * (1 + 1e-6):
        raise InputError(
            f"two particles are {longest:.6g} apart, but the kernel was seen up to {end:.6g} only: leave out what is "
            f"further away, or say by the entry radius = {end:.6g} that there is no interaction beyond."
        )
    used = np.ones(particles.positions.shape, dtype=bool)
    tokens, places = particles.tokens(operator, used), particles.places(used)
    at, v = np.arange(used.size), entries.get("velocities")
    return Inputs(tokens.T.contiguous(), particles.shape, at, of_inputs=places, responses=v)


def _velocities(entries: Entries, particles: Particles) -> np.ndarray:
    """As measured, (S, T, n, dim)."""
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
    return v.reshape(particles.positions.shape)


def _operator(entries: Entries, longest: float) -> Interaction:
    """Up to the radius, by default the longest distance."""
    if not longest > 0:
        raise InputError("all particles are at the same place in every snapshot; give positions that differ.")
    given = numbers(entries, "radius") if "radius" in entries else np.asarray(longest)
    if given.size != 1 or not 0 < given.item() < np.inf:
        raise InputError(f"radius must be one positive number, in the unit of positions, got {given}.")
    return Interaction(given.item() / RADII, RADII)
