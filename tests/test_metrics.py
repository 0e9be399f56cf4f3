"""Errors against small cases computed by hand."""

import pytest
import torch

from kernelmap.core import grids
from kernelmap.core.metrics import exploration_measure, kernel_error, operator_error, relative_difference


def tensor(values: list) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_with_one_output_point_the_norm_is_over_the_pairs():
    measured, predicted = tensor([[3.0, 4.0, 0.0]]), tensor([[3.0, 3.0, 2.0]])
    error = operator_error(predicted, measured, grids.point())
    assert float(error) == pytest.approx(5**0.5 / 5)


def test_with_several_output_points_the_error_is_averaged_over_pairs():
    """Weights 1, 3, 2; pair 1: sqrt(3 / 9), pair 2: sqrt(2 (4-2)² / (4 + 2·4))."""
    x = grids.from_points([0.0, 2.0, 6.0])
    assert x.weights.tolist() == [1, 3, 2]
    measured = tensor([[1.0, 2.0], [0.0, 0.0], [2.0, 2.0]])
    predicted = tensor([[1.0, 2.0], [1.0, 0.0], [2.0, 4.0]])
    expected = ((3 / 9) ** 0.5 + (8 / 12) ** 0.5) / 2
    assert float(operator_error(predicted, measured, x)) == pytest.approx(expected)


def test_operator_errors_of_a_batch_are_separate():
    x = grids.from_points([0.0, 1.0, 3.0]).with_components(2)
    measured = torch.randn(2, 3, 6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scales = tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    for grid, values in ((x, measured), (grids.point(), measured[..., :1, :])):
        error = operator_error((1 + scales[..., None, None]) * values, values, grid)
        torch.testing.assert_close(error, scales)


def test_the_exploration_measure_integrates_to_one():
    y = grids.from_points([0.0, 1.0, 1.5, 4.0]).with_components(2)
    u = torch.randn(3, 7, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rho = exploration_measure(u, y)
    assert rho.shape == (3, 8)
    assert (rho > 0).all()
    torch.testing.assert_close((rho * y.value_weights).sum(dim=-1), torch.ones(3, dtype=torch.float64))
    assert torch.allclose(exploration_measure(-5 * u, y), rho)


def test_the_exploration_measure_sums_sizes():
    """|1| + |-1|, |2| + |0|, |0| + |6| = 2, 2, 6 with weights 1/2 each: the integral is 5."""
    rho = exploration_measure(tensor([[1.0, 2.0, 0.0], [-1.0, 0.0, 6.0]]), grids.radii(0.5, 3))
    torch.testing.assert_close(rho, tensor([0.4, 0.4, 1.2]))


def test_the_kernel_error_counts_where_the_pairs_look():
    y, truth, estimate = grids.radii(0.5, 3), tensor([[1.0, 2.0, 4.0]]), tensor([[2.0, 2.0, 40.0]])
    rho = tensor([1.0, 1.0, 0.0])
    assert float(kernel_error(estimate, truth, rho, y)) == pytest.approx((1 / 5) ** 0.5)
    assert float(kernel_error(estimate, truth, tensor([0.0, 1.0, 0.0]), y)) == 0


def test_the_kernel_error_of_a_matrix_is_one_number_with_the_weights_of_y():
    """Weights 1/2, 3/2, 1 times rho 2, 2, 1: 1, 3, 1."""
    y = grids.from_points([0.0, 1.0, 3.0])
    truth, estimate = tensor([[1.0, 0.0, 1.0], [0.0, 2.0, 0.0]]), tensor([[1.0, 1.0, 1.0], [0.0, 2.0, 2.0]])
    error = kernel_error(estimate, truth, tensor([2.0, 2.0, 1.0]), y)
    assert float(error) == pytest.approx(((3 + 4) / (1 + 1 + 12)) ** 0.5)


def test_one_truth_serves_many_estimates():
    y = grids.radii(0.5, 3)
    truth = tensor([[1.0, 2.0, 4.0]])
    estimates = torch.stack([1.5 * truth, 0.9 * truth])
    torch.testing.assert_close(kernel_error(estimates, truth, torch.ones(3).double(), y), tensor([0.5, 0.1]))


def test_relative_difference_is_in_the_second_array_s_units():
    assert relative_difference(tensor([[3.0, 0.0]]), tensor([[0.0, 2.0]])) == pytest.approx(13**0.5 / 2)
