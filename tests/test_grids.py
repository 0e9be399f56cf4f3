"""Quadrature weights against integrals known in closed form."""

import numpy as np
import pytest
import torch

from kernelmap.core import grids
from kernelmap.core.errors import InputError


def test_trapezoidal_weights_integrate_linear_functions_exactly():
    generator = np.random.default_rng(0)
    points = np.sort(generator.uniform(-3, 5, size=17))
    grid = grids.from_points(points)
    a, b = points[0], points[-1]
    integral = (grid.weights * (2 - 3 * grid.points[:, 0])).sum()
    assert float(integral) == pytest.approx(2 * (b - a) - 1.5 * (b**2 - a**2), rel=1e-13)


def test_trapezoidal_weights_are_of_second_order():
    def error(n: int) -> float:
        grid = grids.from_points(np.linspace(0, 1, n) ** 2)
        return abs(float((grid.weights * grid.points[:, 0].exp()).sum()) - (np.e - 1))

    assert error(201) == pytest.approx(error(101) / 4, rel=0.01)


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_points_may_be_a_list_an_array_or_a_tensor(kind):
    grid = grids.from_points(kind([0.0, 1.0, 4.0]))
    assert grid.points.tolist() == [[0], [1], [4]]
    assert grid.weights.tolist() == [0.5, 2, 1.5]
    assert grid.points.dtype == grid.weights.dtype == torch.float64


def test_radii_leave_out_the_origin():
    grid = grids.radii(0.25, 4)
    assert grid.points.tolist() == [[0.25], [0.5], [0.75], [1.0]]
    assert grid.weights.tolist() == [0.25] * 4
    assert (grid.size, grid.dim, grid.is_point) == (4, 1, False)


def test_rectangle_runs_through_its_last_coordinate_fastest():
    grid = grids.rectangle(3, low=-1.0, high=1.0)
    assert grid.points.tolist() == [[x, y] for x in (-1, 0, 1) for y in (-1, 0, 1)]
    assert grid.weights.tolist() == [1.0] * 9


def test_rectangle_in_other_dimensions():
    grid = grids.rectangle(5, dim=3, low=0.0, high=2.0)
    assert grid.points.shape == (125, 3)
    assert grid.weights.unique().tolist() == [0.125]


def test_a_scalar_output_is_one_point_of_weight_one():
    grid = grids.point()
    assert grid.is_point
    assert grid.size == 1
    assert grid.weights.tolist() == [1]


def test_components_are_stacked():
    grid = grids.from_points([0.0, 1.0, 4.0]).with_components(2)
    assert grid.size == 6
    assert grid.value_weights.tolist() == [0.5, 2, 1.5, 0.5, 2, 1.5]


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([1.0], "at least two points"),
        ([], "at least two points"),
        (np.zeros((3, 2)), r"shape \(3, 2\)"),
        ([0.0, 2.0, 1.0], "strictly increasing"),
        ([0.0, 1.0, 1.0], "drop duplicates"),
        ([0.0, float("nan"), 1.0], "finite"),
        ([0.0, 1.0, float("inf")], "finite"),
    ],
)
def test_unusable_points_are_refused(points, message):
    with pytest.raises(InputError, match=message):
        grids.from_points(points)


def test_cells_end_at_the_points_and_begin_where_the_quadrature_does():
    torch.testing.assert_close(grids.radii(0.5, 4).cells, torch.tensor([[0.5] * 4, [2.0] * 4]).double())
    torch.testing.assert_close(
        grids.from_points([0.0, 1.0, 3.0]).cells, torch.tensor([[0.0, 1, 2], [0, 1, 0.5]]).double()
    )


def test_cells_are_those_of_one_dimension():
    for grid in (grids.point(), grids.rectangle(3)):
        with pytest.raises(InputError, match="one dimension"):
            _ = grid.cells
