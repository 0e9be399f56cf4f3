"""The five-point scheme against a manufactured solution, direct linear algebra, and closed forms."""

import numpy as np
import pytest

from kernelmap.core.errors import InputError
from kernelmap.problems.darcy import green_kernel, interior, microstructures, pressures, sources, stiffness
from kernelmap.problems.darcy import stiffness_kernel as kernel_of
from kernelmap.problems.darcy.scheme import upper_bands

PI = np.pi
MEANS = pytest.mark.parametrize("mean", ["arithmetic", "harmonic"])


def nodes(n: int) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.meshgrid(*[np.linspace(0, 1, n)] * 2, indexing="ij")
    return x, y


def error_of_manufactured_solution(n: int, mean) -> float:
    """p = sin πx sin 2πy under b = 2 + x² + sin y, with g = -b Δp - b_x p_x - b_y p_y written out."""
    x, y = nodes(n)
    b, p = 2 + x**2 + np.sin(y), np.sin(PI * x) * np.sin(2 * PI * y)
    g = 5 * PI**2 * b * p
    g -= 2 * x * PI * np.cos(PI * x) * np.sin(2 * PI * y) + np.cos(y) * 2 * PI * np.sin(PI * x) * np.cos(2 * PI * y)
    return float(np.abs(pressures(b, g[None], mean)[0] - p).max())


@MEANS
def test_errors_are_of_second_order(mean):
    errors = [error_of_manufactured_solution(n, mean) for n in (11, 21, 41, 81)]
    rates = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (abs(rates - 2) < 0.05).all()
    assert errors[-1] < 1e-3


@MEANS
def test_rows_follow_the_formula(mean):
    """Node by node, from the definition."""
    n = 6
    b = np.random.default_rng(0).uniform(1, 9, (n, n))
    A = stiffness(b, mean).toarray().reshape(n - 2, n - 2, n - 2, n - 2)
    p = np.zeros((n, n))
    p[1:-1, 1:-1] = np.random.default_rng(1).standard_normal((n - 2, n - 2))
    applied = np.einsum("ijkl,kl->ij", A, p[1:-1, 1:-1])
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            total = 0.0
            for k, m in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
                pair = np.array([b[i, j], b[k, m]])
                face = pair.mean() if mean == "arithmetic" else 2 / (1 / pair).sum()
                total += face * (p[i, j] - p[k, m]) * (n - 1) ** 2
            assert applied[i - 1, j - 1] == pytest.approx(total)


@MEANS
@pytest.mark.parametrize("n", [3, 4, 9])
def test_symmetric_and_positive_definite(n, mean):
    A = stiffness(microstructures(n, [0])[0], mean)
    assert A.nnz == 5 * (n - 2) ** 2 - 4 * (n - 2)
    assert abs(A - A.T).max() == 0
    assert np.linalg.eigvalsh(A.toarray())[0] > 0


def test_of_a_constant_permeability_the_eigenvalues_are_known():
    n, h = 9, 1 / 8
    A = stiffness(np.full((n, n), 3.0)).toarray()
    k = np.arange(1, n - 1)
    each = 4 / h**2 * np.sin(PI * k * h / 2) ** 2
    np.testing.assert_allclose(np.linalg.eigvalsh(A), np.sort((3 * (each[:, None] + each)).ravel()))


@MEANS
def test_stiffness_times_pressure_is_the_source(mean):
    n = 21
    b, g = microstructures(n, [4])[0], sources(n, range(3))
    p = pressures(b, g, mean)
    inside = p[:, 1:-1, 1:-1].reshape(3, -1).T
    np.testing.assert_allclose(stiffness(b, mean) @ inside, g[:, 1:-1, 1:-1].reshape(3, -1).T, atol=1e-10)
    ring = np.ones((n, n), dtype=bool)
    ring[1:-1, 1:-1] = False
    assert not p[:, ring].any()


@MEANS
def test_kernels_act_as_the_operators(mean):
    """p = h² Σ K g with the Green's function, g = h² Σ K p with the stiffness, zero on the ring."""
    n = 13
    h, b, g = 1 / (n - 1), microstructures(n, [1])[0], sources(n, range(4))
    p = pressures(b, g, mean)
    green, local = green_kernel(b, mean), kernel_of(b, mean)
    np.testing.assert_allclose(h**2 * g.reshape(4, -1) @ green.T, p.reshape(4, -1), atol=1e-12)
    inner = interior(n)
    np.testing.assert_allclose(h**2 * (p.reshape(4, -1) @ local.T)[:, inner], g.reshape(4, -1)[:, inner], atol=1e-10)
    ring = np.setdiff1d(np.arange(n**2), inner)
    for kernel in (green, local):
        assert not kernel[ring].any()
        assert not kernel[:, ring].any()
        np.testing.assert_allclose(kernel, kernel.T, atol=1e-12)
    np.testing.assert_allclose(
        green[np.ix_(inner, inner)] @ local[np.ix_(inner, inner)] * h**4, np.eye(11**2), atol=1e-9
    )


def test_greens_function_of_the_homogeneous_square():
    """Against its series 4 Σ sin sin sin sin / (b π² |k|²), away from the singularity."""
    n, b = 41, 3.0
    kernel = green_kernel(np.full((n, n), b)).reshape(n, n, n, n)
    k = np.arange(1, 400)
    x, y, s, t = 10 / 40, 12 / 40, 30 / 40, 25 / 40
    left, right = np.sin(PI * k * x) * np.sin(PI * k * s), np.sin(PI * k * y) * np.sin(PI * k * t)
    series = 4 * (np.outer(left, right) / (b * PI**2 * (k[:, None] ** 2 + k**2))).sum()
    assert kernel[10, 12, 30, 25] == pytest.approx(series, rel=5e-3)


def test_bad_permeabilities_and_grids_are_refused():
    with pytest.raises(InputError, match="n of at least 3"):
        upper_bands(np.ones((2, 2)))
    with pytest.raises(InputError, match="finite and positive"):
        upper_bands(np.zeros((5, 5)))
    with pytest.raises(InputError, match="give both on one grid"):
        pressures(np.ones((5, 5)), np.ones((1, 6, 6)))
