"""Tokens g[b] of a permeability: its responses to a few known sources, as far as a few cheap steps get.

The solution operator b -> p is not linear in b, so no kernel K(x, y) that acts on b itself is right. But for one source
g = Σ_r γ_r g_r of a system, p is a combination of the responses p_r[b] to known sources g_r. Each is approached by

    p <- p + G0 (g_r - A_b p) ,   starting from p = G0 g_r

with the solution operator G0 of a homogeneous medium, which needs no solution with b. One step is linear in b.
"""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float

from kernelmap.core.grids import rectangle
from kernelmap.core.progress import progress
from kernelmap.core.systems import SystemSet
from kernelmap.problems.darcy.data import DarcyData
from kernelmap.problems.darcy.scheme import interior, pressures, stiffness

WAVES = 5
"""Sources are cos(π a x) cos(π c y) with a, c below this."""

STEPS = 4

TYPICAL = 7.5
"""Permeability of the homogeneous medium: the mean of the two phases."""


def known_sources(n: int) -> Float[np.ndarray, "R n n"]:
    x = np.linspace(0, 1, n)
    waves = np.cos(np.pi * np.arange(WAVES)[:, None] * x)
    return np.einsum("ai,cj->acij", waves, waves).reshape(-1, n, n)


def smoothness(power: float = 2.5, scale: float = 49.0) -> Float[np.ndarray, " R"]:
    """Standard deviation of γ_r for sources with the spectrum of the generator, (|k|² + 49)^(-2.5/2), largest 1."""
    a, c = np.divmod(np.arange(WAVES**2), WAVES)
    spread = (np.pi**2 * (a**2 + c**2) + scale) ** (-power / 2)
    return spread / spread.max()


def response_tokens(b: Float[np.ndarray, "P n n"], steps: int = STEPS) -> Float[np.ndarray, "P R n n"]:
    """p_r[b] after so many steps, for every known source."""
    n = b.shape[-1]
    g, inside = known_sources(n), interior(n)
    medium = np.full((n, n), TYPICAL)

    def respond(sources: np.ndarray) -> np.ndarray:
        return pressures(medium, sources)

    first = respond(g)
    tokens = np.empty((len(b), *first.shape))
    for i, each in enumerate(progress(b, "Tokens", len(b))):
        A, p = stiffness(each), first
        for _ in range(steps):
            residual = g.copy()
            residual.reshape(len(g), -1)[:, inside] -= (A @ p.reshape(len(g), -1)[:, inside].T).T
            p = p + respond(residual)
        tokens[i] = p
    return tokens


def with_tokens(data: DarcyData, steps: int = STEPS) -> DarcyData:
    """b-to-p with the tokens g[b] in place of b: fields of several components."""
    return replace(data, **{name: _tokens_of(getattr(data, name), steps) for name in ("train", "test", "heldout")})


def _tokens_of(systems: SystemSet, steps: int) -> SystemSet:
    n = systems.about["n"]
    tokens = response_tokens(systems.u[0].reshape(-1, n, n).numpy(), steps)
    y = rectangle(n).with_components(tokens.shape[1])
    u = torch.from_numpy(tokens).flatten(1)[None]
    return replace(systems, u=u, y=y, about=systems.about | {"tokens": f"responses after {steps} steps"})
