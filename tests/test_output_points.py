"""Kernels at chosen output points, and training on a few of them at a time."""

from dataclasses import replace

import pytest
import torch

from examples import CONTEXTS, radial_context
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.metrics import relative_difference
from kernelmap.core.systems import SystemSet
from kernelmap.maps import MAPS, KernelMap, NAOOptions
from kernelmap.maps.loss import ContextLoss
from kernelmap.training.loop import train
from kernelmap.training.recipe import Recipe

SOME = torch.tensor([7, 2, 5])


def model_of(context, name: str = "nao", **options) -> KernelMap:
    torch.manual_seed(0)
    model = MAPS[name].build(ContextShape.of(context), MAPS[name].Options(dk=4, **options)).double()
    model.standardise(context.U, context.F)
    return model


@pytest.mark.parametrize("kind", ["square", "vector"])
@pytest.mark.parametrize(
    "options",
    [
        {"name": "nao", "normaliser": "continuous"},
        {"name": "nao", "normaliser": "array", "mixer": "network"},
        {"name": "nao", "normaliser": "tokens"},
        {"name": "nao", "mixer": "convolution", "waves": 3},
        {"name": "nao", "normaliser": "functions", "per_component": True},
        {"name": "softmax-nao"},
        {"name": "nao-u"},
    ],
)
def test_rows_at_chosen_points_are_those_of_the_whole_kernel(kind, options):
    context = CONTEXTS[kind](batch=(2,))
    model = model_of(context, **options)
    whole = model(context).values.unflatten(-2, (context.x.components, -1))[..., SOME, :].flatten(-3, -2)
    assert relative_difference(model(context, context.x.sample(SOME)).values, whole) < 1e-12


def test_points_between_those_of_the_context_are_taken():
    context = CONTEXTS["square"]()
    x = replace(context.x, points=context.x.points * 0.97)
    assert torch.isfinite(model_of(context)(context, x).values).all()


@pytest.mark.parametrize("name", ["discrete-nao", "autoencoder", "afno"])
def test_maps_of_arrays_have_no_other_points(name):
    context = CONTEXTS["square"]()
    with pytest.raises(InputError, match="output points"):
        model_of(context, name)(context, context.x.sample(SOME))


def test_points_outside_the_domain_are_refused():
    context = CONTEXTS["square"]()
    with pytest.raises(InputError, match="outside"):
        model_of(context)(context, replace(context.x, points=context.x.points + 1))


def test_the_loss_at_chosen_points():
    """All points: the whole loss. Some: another one for every seed, near it on average. None of it in validation."""
    context = CONTEXTS["vector"](batch=(3,))
    model = model_of(context)
    n = len(context.x.points)
    whole = ContextLoss(model, context.y, context.x)(context.U, context.F, 0)
    torch.testing.assert_close(ContextLoss(model, context.y, context.x, n)(context.U, context.F, 5), whole)
    few = ContextLoss(model, context.y, context.x, n // 2)
    losses = torch.stack([few(context.U, context.F, seed) for seed in range(200)])
    assert losses[0].ne(losses[1]).all()
    assert torch.equal(few(context.U, context.F, 1), losses[1])
    held = context.F * (torch.arange(2 * n) % n > 0)[:, None]
    one = ContextLoss(model, context.y, context.x, 1)
    assert all(torch.isfinite(one(context.U, held, seed)).all() for seed in range(30))
    torch.testing.assert_close(losses.mean(dim=0), whole, rtol=0.1, atol=0)
    torch.testing.assert_close(few.eval()(context.U, context.F, 1), whole)


def square_systems() -> SystemSet:
    context = CONTEXTS["square"](batch=(6,), shared=False)
    return SystemSet(
        tuple("abcdef"), context.U.mT.contiguous(), context.F.mT.contiguous(), context.y, context.x, about={}
    )


def test_training_at_a_few_points(tmp_path):
    recipe = Recipe(epochs=6, batch=2, every=1, points=5, random_draws=True, validation_systems=2)
    progress = train("nao", NAOOptions(dk=3, mixer="network"), square_systems(), 4, recipe, tmp_path, about={})
    assert progress.best_loss < 1.5


@pytest.mark.parametrize("points", [0, 10_000])
def test_impossible_numbers_of_points_are_refused(points, tmp_path):
    recipe = Recipe(epochs=1, points=points, random_draws=True, validation_systems=2)
    with pytest.raises(InputError, match="from 1 to all"):
        train("nao", NAOOptions(dk=3), square_systems(), 4, recipe, tmp_path, about={})


@pytest.mark.parametrize("name", ["discrete-nao", "afno", "local-posterior"])
def test_maps_that_are_trained_at_all_points_say_so(name, tmp_path):
    recipe = Recipe(epochs=1, points=5, precision="float64")
    with pytest.raises(InputError, match=f"the {name} map is trained at all output points; leave out --points"):
        train(name, MAPS[name].Options(), square_systems(), 4, recipe, tmp_path / "out", about={})
    assert not (tmp_path / "out").exists()


def test_one_output_point_cannot_be_chosen_from(tmp_path):
    context = radial_context(batch=(6,), shared=False)
    data = SystemSet(tuple("abcdef"), context.U.mT, context.F.mT, context.y, context.x, about={})
    with pytest.raises(InputError, match="there is one output point; leave out --points"):
        train("nao", NAOOptions(), data, 4, Recipe(epochs=1, points=5), tmp_path, about={})
