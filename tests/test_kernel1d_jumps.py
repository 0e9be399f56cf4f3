"""Kernels with jumps: smooth pieces between edges, found by evidence."""

from dataclasses import replace

import pytest
import torch

from kernel1d_systems import SMALL, model, waves
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.metrics import exploration_measure, kernel_error
from kernelmap.posterior.kernel1d.components import Spectrum
from kernelmap.posterior.kernel1d.pieces import PLACES, Pieces, Responses

STEPPED = replace(SMALL, edges=3)


def staircase(edges: tuple[float, ...], heights: tuple[float, ...], noise: float) -> tuple[Context, torch.Tensor]:
    """Pairs of random waves whose responses are integrals of a kernel that is constant between edges."""
    context, _ = waves(120)
    n = context.y.size
    fine = grids.radii(1 / (40 * n), 40 * n)
    generator = torch.Generator().manual_seed(0)
    k = 1 + 60 * torch.rand(120, generator=generator, dtype=torch.float64)
    values = torch.tensor(heights, dtype=torch.float64)
    places = torch.tensor(edges, dtype=torch.float64)
    kernel = values[torch.bucketize(fine.points[:, 0], places)]
    f = (kernel * fine.weights) @ (torch.cos(k * fine.points) - 1)
    f = f + noise * f.square().mean().sqrt() * torch.randn(120, generator=generator, dtype=torch.float64)
    truth = values[torch.bucketize(context.y.points[:, 0], places)]
    return Context(torch.cos(k * context.y.points) - 1, f[None], context.y, grids.point()), truth


def error(options, context: Context, truth: torch.Tensor) -> tuple[float, float]:
    """Error of the kernel, and the error that its band expects."""
    posterior = model(options).posterior(context)
    rho = exploration_measure(context.U.mT, context.y)
    mean, std = posterior.mean, posterior.std
    return (
        float(kernel_error(mean, truth[None], rho, context.y)),
        float(kernel_error(mean + std, mean, rho, context.y)),
    )


@pytest.mark.parametrize("edges", [(0.31,), (0.22, 0.57)])
def test_jumps_are_found_where_they_are(edges: tuple[float, ...]) -> None:
    context, truth = staircase(edges, (*(1.0, -0.5, 0.0)[: len(edges)], 0.0), noise=0.005)
    found, expected = error(STEPPED, context, truth)
    smooth, _ = error(SMALL, context, truth)
    assert found < 0.4 * smooth
    assert found < 3 * expected


def test_pieces_respond_as_their_features_do() -> None:
    context, _ = waves(9)
    pieces = Pieces(4, (Spectrum(0, 1, 3),), (1.0, 0.01), 3)
    sums = Responses.of(pieces, context.U, 2.0, context.y, 0.01)
    features = sums.features_of((5, 30))
    assert features.shape == (60, 3 * 4 + 2)
    # The first piece ends, and the second begins, between two points of the grid.
    assert features[5, :4].any()
    assert not features[6:, :4].any()
    assert not features[:6, 4:8].any()
    responses = sums.of_pieces((5, 30))
    torch.testing.assert_close(responses[:, :12], context.U.mT @ (context.y.weights[:, None] / 2 * features[:, :12]))
    # An edge that moves by a cell adds a cell of the token there, and nothing to the kernel on the grid.
    assert not features[:, 12:].any()
    torch.testing.assert_close(responses[:, 12], (context.U[5] + context.U[6]) / 2 / 2 / 60, rtol=0.01, atol=1e-9)


def test_components_of_a_number_of_edges_share_its_odds() -> None:
    pieces = Pieces(4, (Spectrum(0, 1, 3),), (1.0, 0.01), 3)
    components = pieces.components([(3,), (2, 7)], 10, 100, torch.device("cpu"))
    assert [component.odds for component in components] == [100, 101, 102, 103]
    assert components[0].log_part == pytest.approx(-2.302585)
    assert components[2].log_part == pytest.approx(-3.806662)
    ending, going_on = components[1].omega, components[0].omega
    torch.testing.assert_close(ending[4:8], 0.01 * going_on[4:8])
    assert PLACES >= 400
