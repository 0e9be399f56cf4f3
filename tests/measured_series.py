"""Series with responses of known kernels, errors that go on in time or not, and files of them."""

import numpy as np

from kernel1d_systems import model
from kernelmap.core import Context
from kernelmap.io import read_measurements
from kernelmap.posterior import Kernel1dPosterior


def series(samples: int = 200, inputs: int = 1, noise: float = 0.03, tau: float = 0.0, seed: int = 0) -> dict:
    """Responses of an exponential and a delayed response to random inputs, with white or AR(1) errors."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(inputs, samples)) + np.abs(rng.normal(size=(inputs, samples)))
    f = np.zeros(samples)
    for i in range(inputs):
        weights = kernel(i)
        weights[[0, -1]] /= 2
        f += np.convolve(u[i], weights)[:samples]
    e = rng.normal(size=samples)
    if tau:
        phi = np.exp(-1 / tau)
        for j in range(1, samples):
            e[j] = phi * e[j - 1] + np.sqrt(1 - phi**2) * e[j]
    f += noise * f[30:].std() * e
    return {"operator": "convolution", "t": np.arange(1.0 * samples), "u": u, "f": f, "radius": 30.0}


def kernel(number: int) -> np.ndarray:
    s = np.arange(31.0)
    return np.exp(-s / 5) if number == 0 else 0.5 * (s / 4) ** 2 * np.exp(2 - s / 4) / 4


def context_of(entries: dict, tmp_path) -> Context:
    np.savez(tmp_path / "series.npz", **entries)
    return read_measurements(tmp_path / "series.npz").context


def posterior(context: Context) -> Kernel1dPosterior:
    return model().posterior(context)


def error(found: Kernel1dPosterior, truth: np.ndarray) -> float:
    K = found.mean[0].numpy()
    return float(np.linalg.norm(K - truth) / np.linalg.norm(truth))
