"""A kernel as values and as factors, applied, evaluated between its points, and written to files."""

import csv

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelmap.core import grids
from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def factored(batch: tuple[int, ...] = (), rank: int = 2) -> Kernel:
    """4 x 5, on a non-uniform y."""
    y, x = grids.from_points([0.0, 0.5, 2.0, 2.25, 4.0]), grids.from_points([0.0, 1.0, 2.0, 3.0])
    return Kernel(randn(*batch, rank, 5), y, x, randn(*batch, 4, rank))


def looped(kernel: Kernel, U: torch.Tensor) -> torch.Tensor:
    """f[m, j] = Σ_k Σ_r left[m, r] right[r, k] w[k] U[k, j], one number at a time."""
    weights = [float(w) for w in kernel.y.weights] * kernel.y.components
    f = torch.zeros(kernel.x.size, U.shape[1], dtype=torch.float64)
    for m in range(f.shape[0]):
        for j in range(f.shape[1]):
            for k, w in enumerate(weights):
                if kernel.left is None:
                    value = float(kernel.right[m, k])
                else:
                    value = sum(float(kernel.left[m, r] * kernel.right[r, k]) for r in range(kernel.right.shape[0]))
                f[m, j] += value * w * float(U[k, j])
    return f


@pytest.mark.parametrize("rank", [1, 2, 4, 7])
def test_factors_and_values_are_the_same_operator(rank):
    kernel = factored(rank=rank)
    plain = Kernel(kernel.values, kernel.y, kernel.x)
    U = randn(5, 3)
    torch.testing.assert_close(kernel.apply(U), looped(kernel, U))
    torch.testing.assert_close(plain.apply(U), looped(kernel, U))


def test_components_have_the_weights_of_their_points():
    grid = grids.from_points([0.0, 1.0, 4.0]).with_components(2)
    kernel, U = Kernel(randn(6, 6), grid, grid), randn(6, 2)
    torch.testing.assert_close(kernel.apply(U), looped(kernel, U))


@pytest.mark.parametrize("kind", ["factors", "values"])
def test_inputs_shared_by_a_batch_are_applied_to_every_system(kind):
    kernel = factored((3, 4))
    if kind == "values":
        kernel = Kernel(kernel.values, kernel.y, kernel.x)
    shared, single = randn(3, 1, 5, 2), randn(5, 2)
    f, g = kernel.apply(shared), kernel.apply(single)
    assert f.shape == g.shape == (3, 4, 4, 2)
    for i in range(3):
        for j in range(4):
            torch.testing.assert_close(f[i, j], looped(kernel[i, j], shared[i, 0]))
            torch.testing.assert_close(g[i, j], looped(kernel[i, j], single))


class LargestTensor(TorchDispatchMode):
    """Records the number of elements of the largest tensor made."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.elements = max(self.elements, out.numel())
        return out


def test_factors_are_applied_without_building_the_kernel():
    N, R = 20_000, 3
    grid = grids.radii(1 / N, N)
    left, right, U = randn(N, R), randn(R, N), randn(N, 2)
    kernel = Kernel(right, grid, grid, left)
    with LargestTensor() as largest:
        f = kernel.apply(U)
    assert 0 < largest.elements <= R * N
    weighted = right.numpy() @ (U.numpy() / N)
    np.testing.assert_allclose(f.numpy(), left.numpy() @ weighted, rtol=1e-10, atol=1e-12)


def test_one_output_point_is_applied_from_values():
    """With M = 1 < R the product of the factors is the smaller array."""
    kernel = Kernel(randn(3, 5), grids.radii(0.5, 5), grids.point(), randn(1, 3))
    U = randn(5, 4)
    torch.testing.assert_close(kernel.apply(U), looped(kernel, U))


def test_shapes_that_do_not_fit_are_refused():
    y, x = grids.radii(0.5, 5), grids.point()
    with pytest.raises(InputError, match="4 columns but the grid y has 5"):
        Kernel(randn(1, 4), y, x)
    with pytest.raises(InputError, match="2 rows but the grid x has 1"):
        Kernel(randn(2, 5), y, x)
    with pytest.raises(InputError, match="3 rows but the grid x has 1"):
        Kernel(randn(2, 5), y, x, randn(3, 2))
    with pytest.raises(InputError, match=r"inputs with 5 values, got 6 \(shape \(6, 2\)\)"):
        Kernel(randn(1, 5), y, x).apply(randn(6, 2))


def test_linear_functions_are_exact_between_points_in_one_dimension():
    y, x = grids.from_points([0.0, 0.5, 2.0, 4.0]), grids.from_points([-1.0, 0.0, 3.0])
    kernel = Kernel((1 + 2 * x.points) * (3 - y.points.mT), y, x)
    at_y, at_x = np.array([0.0, 0.3, 1.9, 3.1, 4.0]), np.array([-0.5, 2.0])
    np.testing.assert_allclose(kernel(at_y), np.outer(1 + 2 * x.points[:, 0].numpy(), 3 - at_y), atol=1e-13)
    np.testing.assert_allclose(kernel(at_y, at_x), np.outer(1 + 2 * at_x, 3 - at_y), atol=1e-13)
    np.testing.assert_allclose(kernel(torch.tensor([1.7])), [[-1.3], [1.3], [9.1]], atol=1e-13)


def test_linear_functions_are_exact_between_points_in_two_dimensions_with_components():
    """Component (a, b) is (1 + a + x·p) (2 - b + y·q) on different grids of the unit square."""
    y, x = grids.rectangle(4).with_components(2), grids.rectangle(3).with_components(3)
    p, q = np.array([0.3, -2.0]), np.array([1.5, 0.7])

    def rows(points: np.ndarray) -> np.ndarray:
        return np.stack([1 + a + points @ p for a in range(3)])

    def columns(points: np.ndarray) -> np.ndarray:
        return np.stack([2 - b + points @ q for b in range(2)])

    table = np.multiply.outer(rows(x.points.numpy()).ravel(), columns(y.points.numpy()).ravel())
    kernel = Kernel(torch.from_numpy(table), y, x)
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    at_y = np.concatenate([np.random.default_rng(0).uniform(size=(9, 2)), corners])
    at_x = np.random.default_rng(1).uniform(size=(5, 2))
    expected = np.multiply.outer(rows(at_x), columns(at_y))
    assert expected.shape == (3, 5, 2, 13)
    np.testing.assert_allclose(kernel(at_y, at_x), expected, atol=1e-12)
    at_nodes = np.multiply.outer(rows(x.points.numpy()), columns(at_y))
    np.testing.assert_allclose(kernel(at_y), at_nodes, atol=1e-12)


def test_a_radial_kernel_is_a_function_of_r_down_to_zero():
    y = grids.radii(0.5, 6)
    kernel = Kernel((2 - 3 * y.points).mT, y, grids.point())
    np.testing.assert_allclose(kernel(np.array([0.0, 0.2, 0.5, 2.9])), [2.0, 1.4, 0.5, -6.7], atol=1e-13)


def test_a_batch_is_evaluated_at_once():
    kernel = factored((2, 3))
    at = np.array([0.1, 1.0, 3.9])
    together = kernel(at)
    assert together.shape == (2, 3, 4, 3)
    np.testing.assert_allclose(together[1, 2], kernel[1, 2](at))


@pytest.mark.parametrize("bad", [-0.6, 3.6, 1e9, float("nan")])
def test_radii_outside_the_domain_are_refused(bad):
    kernel = Kernel(randn(1, 6), grids.radii(0.5, 6), grids.point())
    with pytest.raises(InputError, match=r"points y lie outside the kernel's domain \[0.5\] to \[3.0\]"):
        kernel(np.array([1.0, bad]))


def test_points_outside_a_square_are_refused():
    grid = grids.rectangle(5)
    kernel = Kernel(randn(25, 25), grid, grid)
    inside = np.array([[0.5, 0.5]])
    with pytest.raises(InputError, match="points y lie outside"):
        kernel(np.array([[0.5, 1.4]]))
    with pytest.raises(InputError, match="points x lie outside"):
        kernel(inside, np.array([[-0.4, 0.5]]))
    with pytest.raises(InputError, match=r"points y must have shape \(n, 2\), got \(2,\)"):
        kernel(np.array([0.5, 0.5]))


def test_expanding_repeats_the_kernel_for_every_system():
    kernel = factored()
    many = kernel.expand((2, 3))
    assert many.right.shape == (2, 3, 2, 5)
    assert torch.equal(many[1, 2].values, kernel.values)
    assert many.right.untyped_storage().data_ptr() == kernel.right.untyped_storage().data_ptr()


def test_indexing_takes_one_system():
    kernel = factored((3,))
    torch.testing.assert_close(kernel[1].values, kernel.values[1])
    plain = Kernel(kernel.values, kernel.y, kernel.x)
    assert torch.equal(plain[2].values, kernel.values[2])


@pytest.mark.parametrize("kind", ["factors", "values"])
def test_a_saved_kernel_comes_back(tmp_path, kind):
    saved = factored((3,))
    if kind == "values":
        saved = Kernel(saved.values, saved.y, saved.x)
    saved.save(tmp_path / "kernel.h5")
    loaded = Kernel.load(tmp_path / "kernel.h5")
    assert (loaded.left is None) == (kind == "values")
    assert torch.equal(loaded.values, saved.values)
    assert torch.equal(loaded.y.points, saved.y.points)
    assert torch.equal(loaded.y.weights, saved.y.weights)
    assert torch.equal(loaded.x.points, saved.x.points)


def test_a_context_is_no_kernel(tmp_path):
    from examples import radial_context

    radial_context().save(tmp_path / "context.h5")
    with pytest.raises(InputError, match=r"lacks an entry that was expected.*right"):
        Kernel.load(tmp_path / "context.h5")


def test_export_to_npz(tmp_path):
    kernel = factored((3,))
    kernel.export(tmp_path / "kernel.npz")
    with np.load(tmp_path / "kernel.npz") as file:
        np.testing.assert_array_equal(file["K"], kernel.values.numpy())
        np.testing.assert_array_equal(file["y"], kernel.y.points.numpy())
        np.testing.assert_array_equal(file["x"], kernel.x.points.numpy())


def test_export_of_a_radial_kernel_to_csv(tmp_path):
    kernel = Kernel(randn(1, 5), grids.radii(0.5, 5), grids.point())
    kernel.export(tmp_path / "kernel.csv")
    with open(tmp_path / "kernel.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["r"]) for row in rows] == [0.5, 1.0, 1.5, 2.0, 2.5]
    np.testing.assert_allclose([float(row["K"]) for row in rows], kernel.values[0].numpy(), rtol=1e-15)


@pytest.mark.parametrize("name", ["kernel.csv", "kernel.xlsx", "kernel"])
def test_other_exports_are_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"use .npz, or .csv"):
        factored().export(tmp_path / name)
    assert not any(tmp_path.iterdir())
