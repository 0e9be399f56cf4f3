"""A user's own problems: Green's functions, nonlinear responses, radial kernels, particles, size, noisy pressures.

    python experiments/own_problems.py [green | nonlinear | radial | interaction | size | pressure]

Each part writes `experiments/results/own_problems/NAME.json`. `green` reads helmholtz.mat and laplace.mat, published
with GreenLearning, from the directory KERNELMAP_GREEN. Nothing was chosen on these seeds.
"""

import os
import time
from pathlib import Path

import numpy as np
import torch
from measured import RESULTS
from parts import run_parts
from scipy.io import loadmat
from scipy.special import j0

from kernelmap.core import Context, grids
from kernelmap.core.domain import ContextShape
from kernelmap.core.metrics import exploration_measure, kernel_error
from kernelmap.discovery import discover
from kernelmap.io import load_model
from kernelmap.operators import Interaction, Radial
from kernelmap.posterior import GenericIntegralMap, GenericIntegralOptions, GenericIntegralPosterior

SEED, SYSTEMS, NOISE = 0, 8, 0.01
WAVE_NUMBER = 15.0


def string_green(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.minimum(x, y) * (1 - np.maximum(x, y))


def helmholtz_green(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    k, low, high = WAVE_NUMBER, np.minimum(x, y), np.maximum(x, y)
    return np.sin(k * low) * np.sin(k * (high - 1)) / (k * np.sin(k))


def found_from(context: Context) -> tuple[GenericIntegralPosterior, float]:
    """The posterior, its mean and band made, and the seconds of processor time that it took."""
    start = time.process_time()
    posterior = GenericIntegralMap(ContextShape.of(context), GenericIntegralOptions()).posterior(context)
    _ = posterior.moments
    return posterior, time.process_time() - start


def judged(posterior: GenericIntegralPosterior, truth: torch.Tensor) -> dict[str, float]:
    """Frobenius norms."""
    error = posterior.mean - truth
    return {
        "error": float(error.norm() / truth.norm()),
        "coverage": float((error.abs() <= 1.96 * posterior.std).double().mean()),
        "band_to_error": float(posterior.std.norm() / error.norm()),
    }


def green() -> dict:
    """Published responses, solved by others; the exact kernels are known."""
    results = {}
    for name, kernel in {"helmholtz": helmholtz_green, "laplace": string_green}.items():
        data = loadmat(Path(os.environ["KERNELMAP_GREEN"]) / f"{name}.mat")
        x, y = (data[letter].ravel() for letter in "XY")
        for pairs in (80, 40):
            U, F = (torch.from_numpy(data[letter][:, :pairs].copy()) for letter in "FU")
            posterior, seconds = found_from(Context(U, F, grids.from_points(y), grids.from_points(x)))
            row = judged(posterior, torch.from_numpy(kernel(x[:, None], y)))
            row |= {"log_odds_of_nonlinearity": posterior.log_odds_of_nonlinearity, "processor_seconds": seconds}
            results[f"{name}, {pairs}"] = row
    return results


def loads(y: np.ndarray, d: int, rng: np.random.Generator) -> np.ndarray:
    """Random smooth loads (N, d): cosines whose amplitudes fall like a Gaussian of correlation length 0.1."""
    k = np.arange(40)
    return np.cos(np.pi * y[:, None] * k) @ (
        np.exp(-0.5 * (0.1 * np.pi * k / 2) ** 2)[:, None] * rng.normal(size=(40, d))
    )


def nonlinear() -> dict:
    """f = G(u) with -f'' + c f + q f² + s f³ = u by Newton's method on 81 nodes; q = s = 0 is linear."""
    y, d, results = np.linspace(0, 1, 81), 40, {}
    laplacian = (2 * np.eye(79) - np.eye(79, k=1) - np.eye(79, k=-1)) * 80**2
    for name, (q, s) in {"linear": (0.0, 0.0), "quadratic": (1.0, 0.0), "cubic": (0.0, 1.0)}.items():
        for noise in (0.0, NOISE):
            rng = np.random.default_rng(SEED)
            U, F = loads(y, d, rng), np.zeros((81, d))
            size = np.abs(np.linalg.solve(laplacian, U[1:-1])).max()
            for j in range(d):
                v = np.zeros(79)
                for _ in range(30):
                    slope = 10 * (1 + 2 * q * v / size + 3 * s * v**2 / size**2)
                    rest = laplacian @ v + 10 * (v + q * v**2 / size + s * v**3 / size**2) - U[1:-1, j]
                    v = v - np.linalg.solve(laplacian + np.diag(slope), rest)
                F[1:-1, j] = v
            F = F + noise * F.std() * rng.normal(size=F.shape)
            grid = grids.from_points(y)
            found = discover(load_model("integral")[0], Context(torch.from_numpy(U), torch.from_numpy(F), grid, grid))
            results[f"{name}, noise {noise:g}"] = {
                "said": "The responses are not linear in u." in [diagnostic.seen for diagnostic in found.diagnostics],
                "heldout_error": None if found.check is None else found.check.error,
            }
    return results


def in_rho(context: Context, kernel: np.ndarray) -> dict[str, float]:
    """What kernel1d finds, where pairs look."""
    posterior = load_model("kernel1d")[0].double().posterior(context)  # pyright: ignore
    truth = torch.from_numpy(kernel)[None]
    rho = exploration_measure(context.U.mT, context.y)
    seen = rho > 1e-2 * rho.max()
    inside = ((posterior.mean - truth).abs() <= 1.96 * posterior.std)[0, seen]
    error = float(kernel_error(posterior.mean, truth, rho, context.y))
    return {"error": error, "coverage": float(inside.double().mean())}


def radial() -> dict:
    """exp(-r), r up to the last radius, from 100 places in one random field of 100 waves, in closed form."""
    cases = {
        "plane, waves of 1 and longer": (Radial(0.125, 32, 2), 140),
        "plane, waves of 2 and longer": (Radial(0.25, 16, 2), 80),
        "space, waves of 1.2 and longer": (Radial(0.15, 20, 3), 54),
        "space, waves of 2 and longer": (Radial(0.25, 16, 3), 48),
    }
    return {
        name: [in_rho(field(*case, seed), np.exp(-case[0].grid.points[:, 0].numpy())) for seed in range(SYSTEMS)]
        for name, case in cases.items()
    }


def field(operator: Radial, samples: int, seed: int) -> Context:
    """Eight samples or more to each wave; ∫_{|z|=r} (cos k·z - 1) dS in closed form, and Gauss's rule in r."""
    rng, dim = np.random.default_rng([SEED, seed]), operator.dim
    x = operator.step * np.stack(np.meshgrid(*[np.arange(samples)] * dim, indexing="ij"))
    points = rng.choice(np.flatnonzero(operator.reached(*x.shape[1:])), 100, replace=False)
    r, weights = np.polynomial.legendre.leggauss(100)
    r, weights = operator.step * operator.count * (r + 1) / 2, operator.step * operator.count * weights / 2
    u, f = np.zeros(x.shape[1:]), np.zeros(100)
    for _ in range(100):
        direction, k = rng.normal(size=dim), rng.uniform(0, np.pi / (4 * operator.step))
        direction /= np.linalg.norm(direction)
        mean = j0(k * r) if dim == 2 else np.sinc(k * r / np.pi)
        sphere = 2 * np.pi * r if dim == 2 else 4 * np.pi * r**2
        wave = np.cos(k * np.tensordot(direction, x, 1) + rng.uniform(0, 2 * np.pi))
        u += wave
        f += wave.flat[points] * float(weights @ (np.exp(-r) * sphere * (mean - 1)))
    f += NOISE * f.std() * rng.normal(size=100)
    tokens = operator.tokens_at(u[None], np.zeros(100, dtype=int), points)
    return operator.context(tokens, torch.from_numpy(f))


KERNELS = {
    "exp(-r)": lambda r: np.exp(-r),
    "exp(-r²)": lambda r: np.exp(-(r**2)),
    "opinions: 1 up to 1, 0.1 up to 2": lambda r: np.where(r < 1, 1.0, np.where(r < 2, 0.1, 0.0)),
    "repulsion and attraction": lambda r: 2 / (r + 0.3) ** 3 - 3 / (r + 0.3) ** 2,
}


def interaction() -> dict:
    """Twenty particles in the plane, ten snapshots, 1 % noise on velocities."""
    results = {}
    for name, kernel in KERNELS.items():
        rows = []
        for seed in range(SYSTEMS):
            rng = np.random.default_rng([SEED, seed])
            x = rng.uniform(0, 4, size=(10, 20, 2))
            towards = x[:, None] - x[:, :, None]
            r = np.linalg.norm(towards, axis=-1)
            v = (kernel(r)[..., None] * towards).mean(axis=2)
            v += NOISE * v.std() * rng.normal(size=v.shape)
            operator = Interaction(r.max() / 200, 200)
            tokens = operator.tokens_at(x, *(index.ravel() for index in np.indices(v.shape)))
            rows.append(
                in_rho(
                    operator.context(tokens, torch.from_numpy(v.ravel())), kernel(operator.grid.points[:, 0].numpy())
                )
            )
        results[name] = rows
    return results


def size() -> dict:
    """A string's Green's function on more and more points, 60 pairs without noise: error and processor time."""
    results = {}
    for points in (500, 1000, 2000):
        y = np.linspace(0, 1, points)
        U, grid = loads(y, 60, np.random.default_rng(SEED)), grids.from_points(y)
        truth = torch.from_numpy(string_green(y[:, None], y))
        U = torch.from_numpy(U)
        posterior, seconds = found_from(Context(U, truth @ (grid.weights[:, None] * U), grid, grid))
        results[str(points)] = judged(posterior, truth) | {"processor_seconds": seconds}
    return results


def pressure() -> dict:
    """From source to pressure with noise on the pressure, 33 x 17 nodes, 40 pairs: errors on 20 fresh pairs, exact."""
    models = {name: load_model(name)[0] for name in ("darcy", "integral")}
    results = {f"{name}, noise {noise:g}": [] for name in models for noise in (0.0, 0.001, NOISE)}
    for seed in range(4):
        rng, grid = np.random.default_rng([SEED, seed]), grids.mesh(*(torch.linspace(0, s, n) for s, n in SIDES))
        U, F = (torch.from_numpy(values) for values in flow(grid.points.numpy().astype(float), 60, rng))
        for noise in (0.0, 0.001, NOISE):
            measured = F + noise * F.std() * torch.from_numpy(rng.normal(size=F.shape)) * F.any(dim=1, keepdim=True)
            for name, model in models.items():
                context = Context(U[:, :40], measured[:, :40], grid, grid)
                with torch.no_grad():
                    found = model.select_model(context).posterior(context)  # pyright: ignore
                    error = (found.predict(U[:, 40:]).mean - F[:, 40:]).norm() / F[:, 40:].norm()
                results[f"{name}, noise {noise:g}"].append(float(error))
    return results


SIDES = ((2, 33), (1, 17))
"""Length and nodes."""


def flow(points: np.ndarray, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sources and pressures (N, d) by the five-point scheme, in a smooth lognormal medium; p = 0 on the boundary."""
    b = np.exp(0.5 * smooth_fields(points, 1, 0.25, rng)[:, 0])
    step = 1 / (SIDES[1][1] - 1)
    A = np.zeros((len(b), len(b)))
    for i, j in np.argwhere(np.abs(np.linalg.norm(points[:, None] - points, axis=-1) - step) < 1e-6):
        A[i, j] = -(b[i] + b[j]) / 2 / step**2
    A -= np.diag(A.sum(axis=1))
    inside = np.flatnonzero((np.minimum(points, [2, 1] - points) > step / 2).all(axis=1))
    U = smooth_fields(points, d, 0.15, rng)
    F = np.zeros_like(U)
    F[inside] = np.linalg.solve(A[np.ix_(inside, inside)], U[inside])
    return U, F


def smooth_fields(points: np.ndarray, count: int, length: float, rng: np.random.Generator) -> np.ndarray:
    """(N, count), of variance 1 and Gaussian covariance."""
    waves = np.cos(points @ rng.normal(size=(2, 300)) / length + rng.uniform(0, 2 * np.pi, 300))
    return waves @ rng.normal(size=(300, count)) / 150**0.5


PARTS = {part.__name__: part for part in (green, nonlinear, radial, interaction, size, pressure)}

if __name__ == "__main__":
    run_parts("own_problems.py", RESULTS / "own_problems", PARTS, seed=SEED)
