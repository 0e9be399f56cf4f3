"""The simulated world: random systems whose responses are exact before noise."""

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from kernelmap.core.errors import InputError
from kernelmap.problems import PROBLEMS
from kernelmap.problems.world import World, draw_system
from kernelmap.problems.world.inputs import KINDS
from kernelmap.problems.world.kernels import SHAPES, random_kernel
from kernelmap.problems.world.systems import cell_masses, exact_pairs


@pytest.mark.parametrize("shape", SHAPES)
def test_kernels_are_finite_and_integrable(shape) -> None:
    for seed in range(20):
        kernel = shape(np.random.default_rng(seed))
        values = kernel(np.linspace(1e-4, 1, 500))
        assert np.isfinite(values).all()
        assert np.abs(values).max() > 0
        assert np.isfinite(cell_masses(kernel, 50)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_are_finite(kind) -> None:
    x = np.linspace(-2, 2, 801)
    for seed in range(10):
        assert np.isfinite(kind(x, 0.01, np.random.default_rng(seed))).all()


def test_masses_are_integrals() -> None:
    """Of a singular kernel too."""

    def kernel(t: np.ndarray) -> np.ndarray:
        return t**-0.5 * np.exp(-t)

    masses = cell_masses(kernel, 20)
    expected = [quad(lambda t: t**-0.5 * np.exp(-t), a / 20, (a + 1) / 20)[0] for a in range(20)]
    np.testing.assert_allclose(masses, expected, rtol=1e-6)


def test_responses_of_smooth_inputs_are_exact() -> None:
    """The radial response of K = 1 to any input: ∫ u over the range minus twice its value."""
    rng = np.random.default_rng(3)
    U, f = exact_pairs(lambda t: np.ones_like(t), causal=False, N=200, d=20, functions=1, rng=rng)
    trapezoid = (U.sum(axis=0) - 0.5 * U[-1]) / 200
    assert np.linalg.norm(f - trapezoid) < 0.05 * np.linalg.norm(f)


def test_systems_are_the_same_every_time_and_differ_from_each_other() -> None:
    first, again, other = draw_system(7, 0), draw_system(7, 0), draw_system(7, 1)
    assert torch.equal(first.context.U, again.context.U)
    assert torch.equal(first.context.F, again.context.F)
    assert first.context.U.shape != other.context.U.shape or not torch.equal(first.context.U, other.context.U)


def test_options_of_a_drawing() -> None:
    drawn = draw_system(7, 2, d=33, noise=0.1)
    assert drawn.context.d == 33
    assert drawn.noise == 0.1
    quiet = draw_system(7, 2, d=33, noise=0.0)
    change = (drawn.context.F - quiet.context.F).square().mean().sqrt() / quiet.context.F.square().mean().sqrt()
    assert float(change) == pytest.approx(0.1, rel=0.5)
    assert any(draw_system(7, i).noise == 0 for i in range(12))


def test_kernels_vary() -> None:
    t = np.linspace(0.01, 1, 100)
    values = np.stack([random_kernel(np.random.default_rng(i))(t) for i in range(30)])
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    assert np.abs(np.triu(values @ values.T, 1)).mean() < 0.7


def test_is_a_problem() -> None:
    assert PROBLEMS["world"] is World
    contexts = World(systems=3).training().systems
    assert isinstance(contexts, list)
    assert len(contexts) == 3
    with pytest.raises(InputError, match="at least one"):
        World(systems=0)
    with pytest.raises(InputError, match="grids of their own"):
        World().test()
