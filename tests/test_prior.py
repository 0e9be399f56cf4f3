"""The prior kept for a grid: that of the weights, the grid and the range at hand."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from kernelmap.grids import Grid
from kernelmap.maps.prior import LearnedPrior
from kernelmap.metrics import relative_difference
from test_posterior import built, waves


def halved(prior: LearnedPrior) -> dict[str, Tensor]:
    return {name: value / 2 for name, value in prior.state_dict().items()}


def fused_step(prior: LearnedPrior) -> None:
    for parameter in prior.parameters():
        parameter.grad = torch.ones_like(parameter)
    torch.optim.Adam(prior.parameters(), lr=0.01, fused=True).step()


@pytest.mark.parametrize(
    "change",
    [
        lambda prior: prior.kappa.add_(0.5),
        lambda prior: prior.load_state_dict(halved(prior)),
        lambda prior: prior.load_state_dict(halved(prior), assign=True),
        lambda prior: prior.half().double(),
        lambda prior: setattr(prior.network[0], "bias", torch.nn.Parameter(prior.network[0].bias + 1)),
        fused_step,
    ],
)
def test_the_prior_kept_for_a_grid_is_that_of_the_weights(change: Callable[[LearnedPrior], object]):
    context, _ = waves(60, 30)
    model = built(context)
    with torch.no_grad():
        before = model(context).values
        assert torch.equal(model(context).values, before)
        change(model.prior)
        changed = model(context).values
        model.prior.last = None
        assert torch.equal(model(context).values, changed)
    assert relative_difference(changed, before) > 1e-9


def test_the_prior_kept_is_that_of_the_grid():
    context, _ = waves(60, 30)
    model = built(context)
    heavier = Grid(context.y.points, 2 * context.y.weights)
    with torch.no_grad():
        kept = model.prior_on(context.y)
        assert model.prior_on(Grid(context.y.points.clone(), context.y.weights.clone())) is kept
        torch.testing.assert_close(model.prior_on(heavier).weighted, 2 * kept.weighted)
        model.prior_on(context.y)
        context.y.points.mul_(0.9)
        moved = model.prior_on(Grid(context.y.points, context.y.weights)).phi
        model.prior.last = None
        assert torch.equal(moved, model.prior_on(context.y).phi)
        model.shape = replace(model.shape, y=replace(model.shape.y, high=(22.0,)))
        assert not torch.equal(moved, model.prior_on(context.y).phi)
