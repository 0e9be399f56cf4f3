"""One map per component of the output, and the paper's sizes on the mechanics problem."""

import pytest
import torch
from torch.nn.functional import layer_norm

from examples import vector_context
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape, Domain
from kernelmap.core.grids import rectangle
from kernelmap.core.metrics import relative_difference
from kernelmap.io.models import load_model, save_model
from kernelmap.maps import MAPS, NAO, Componentwise, NAOOptions
from kernelmap.maps.nao.functions import integral
from kernelmap.maps.nao.norms import WeightedNorm

SQUARE = Domain((0.0, 0.0), (1.0, 1.0), components=2)


@pytest.mark.parametrize(
    ("name", "normaliser", "d", "printed"),
    [
        ("nao", "functions", 40, 142534),
        ("nao", "functions", 100, 303814),
        ("discrete-nao", "array", 40, 5469528),
        ("discrete-nao", "array", 100, 7353768),
    ],
)
def test_sizes_are_those_of_table_4(name, normaliser, d, printed):
    shape = ContextShape(d, 1682, 1682, SQUARE, SQUARE)
    model = MAPS[name].build(shape, NAOOptions(dk=d, normaliser=normaliser, mixer="network", per_component=True))
    assert model.parameter_count == printed


def model_of(context: Context, name: str = "nao", **options) -> Componentwise:
    torch.manual_seed(0)
    model = MAPS[name].build(ContextShape.of(context), NAOOptions(dk=4, per_component=True, **options)).double()
    model.standardise(context.U, context.F)
    assert isinstance(model, Componentwise)
    return model


@pytest.mark.parametrize("normaliser", ["functions", "array", "continuous"])
def test_rows_of_a_component_are_its_own_maps(normaliser):
    context = vector_context()
    model = model_of(context, normaliser=normaliser)
    both = model(context).values
    x, n = context.x.with_components(1), context.x.size // 2
    for i, part in enumerate(model.maps):
        rows = slice(i * n, (i + 1) * n)
        alone = part(Context(context.U, context.F[:, rows], context.y, x)).values
        assert relative_difference(both[:, rows], alone) < 1e-12
    assert relative_difference(model(context).apply(context.U), both @ (context.U * context.y.weights[0])) < 1e-12


def test_every_parameter_is_trained_and_kept(tmp_path):
    context = vector_context()
    model = model_of(context, normaliser="functions")
    (model(context).apply(context.U) - context.F).square().sum().backward()
    still = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().max() > 0]
    assert still == []
    save_model(tmp_path, model, {})
    again, _ = load_model(tmp_path)
    assert torch.equal(again(context).values, model(context).values)


def test_a_norm_of_functions_belongs_to_no_grid():
    """Smooth fields on a mesh and on one of half the step give nearly the same kernel."""

    def context(n: int) -> Context:
        grid = rectangle(n).with_components(2)
        x, y = grid.points.T
        U = torch.stack([torch.cat([(x + j * y).sin(), (j * x - y).cos()]) for j in range(4)], dim=-1)
        return Context(U, U.flip(0), grid, grid)

    coarse, fine = context(9), context(17)
    model = MAPS["nao"].build(ContextShape.of(coarse), NAOOptions(dk=4, normaliser="functions")).double()
    assert isinstance(model, NAO)
    places = [(i * 17 + j) + c * 289 for c in (0, 1) for i in range(0, 17, 2) for j in range(0, 17, 2)]
    there = model(fine).values[places][:, places]
    assert relative_difference(there, model(coarse).values) < 0.35


def test_the_norm_and_its_gradient_follow_the_formula():
    """Against torch's LayerNorm where all tokens weigh the same, and against finite differences where they do not."""
    generator = torch.Generator().manual_seed(0)
    X, w, b = (
        torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in ((2, 3, 5, 4), (5, 4), (5, 4))
    )
    equal = torch.full((5,), 1 / 20, dtype=torch.float64)
    torch.testing.assert_close(WeightedNorm.apply(X, w, b, equal), layer_norm(X, (5, 4), w, b))
    share = torch.rand(5, generator=generator, dtype=torch.float64)
    for arrays in (X, X[0, 0]):
        assert torch.autograd.gradcheck(lambda *a: WeightedNorm.apply(*a, share / share.sum() / 4), (arrays, w, b))


def test_an_integral_is_the_product_for_every_member_of_a_batch():
    generator = torch.Generator().manual_seed(0)
    W, values = (torch.randn(*shape, generator=generator) for shape in ((2, 5, 7), (3, 4, 2, 7, 6)))
    torch.testing.assert_close(integral(W, values), W @ values)
