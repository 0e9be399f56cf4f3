"""The paper's maps: formulas written out, sizes, gradients, and what only one of them does."""

from typing import Any

import pytest
import torch

from contract import FACTS
from examples import CONTEXTS, radial_context
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.metrics import relative_difference
from kernelmap.maps import MAPS, NAO, KernelMap, NAOOptions, ProbabilisticMap
from kernelmap.maps.nao.functions import network

ANY_MAP = pytest.mark.parametrize("name", [name for name in MAPS.names if not issubclass(MAPS[name], ProbabilisticMap)])
ANY_CONTEXT = pytest.mark.parametrize("kind", list(CONTEXTS))


def build(name: str, context: Context, options: Any = None) -> KernelMap:
    torch.manual_seed(0)
    model = MAPS[name](ContextShape.of(context), options or MAPS[name].Options(**FACTS[name].options)).double()
    model.standardise(context.U, context.F)
    return model


@ANY_MAP
def test_gradients_are_right(name):
    context = radial_context(N=7, d=3, batch=())
    model = build(name, context)
    names = [n for n, _ in model.named_parameters()]

    def response(*values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (context,)).values

    # Not where training starts: there a bound may just be reached, which has one gradient on either side.
    inputs = tuple((p + 0.01 * torch.randn_like(p)).detach().requires_grad_() for p in model.parameters())
    assert torch.autograd.gradcheck(response, inputs, fast_mode=True, atol=1e-6)


def test_nao_u_does_not_see_f():
    context = radial_context()
    model = build("nao-u", context)
    other = Context(context.U, context.F.flip(-1) + 1, context.y, context.x)
    torch.testing.assert_close(model(context).values, model(other).values)
    seeing = build("nao", context)
    assert not torch.allclose(seeing(context).values, seeing(other).values)


@pytest.mark.parametrize("normaliser", ["continuous", "uncentred", "tokens", "array"])
@pytest.mark.parametrize("name", ["nao", "discrete-nao", "softmax-nao", "nao-u"])
def test_normalisers_layers_and_heads(name, normaliser):
    context = radial_context()
    model = build(name, context, NAOOptions(dk=3, layers=3, heads=2, normaliser=normaliser))
    kernel = model(context)
    assert torch.isfinite(kernel.values).all()
    assert kernel.apply(context.U).shape == context.F.shape


@ANY_CONTEXT
@pytest.mark.parametrize("shared", [True, False])
def test_layer_norm_of_tokens_that_are_never_built(kind, shared):
    """Against torch's LayerNorm of the tokens themselves, over several layers and heads."""
    context = CONTEXTS[kind](batch=(2, 3), shared=shared)
    model = build("nao", context, NAOOptions(dk=3, layers=3, heads=2, normaliser="tokens"))
    assert isinstance(model, NAO)
    with torch.no_grad():
        for norm in model.norms:
            norm.weight.uniform_(0.5, 2), norm.bias.uniform_(-1, 1)  # pyright: ignore
    coordinates, h = model.geometry(context)
    q, k = model.layer_normed(context, coordinates, h)
    rows = model.rows(context.x, context, h) / 3**0.5 * model.unit
    direct = (rows @ q @ k[..., : context.y.size, :].mT).sum(dim=-3)
    assert relative_difference(model(context).values.detach(), direct.detach()) < 1e-12


def test_layer_norm_follows_the_formula():
    """Discrete-NAO, one head and two layers, written out with torch's own LayerNorm and the attention matrix."""
    context = radial_context(N=9, d=4, batch=())
    model = build("discrete-nao", context, NAOOptions(dk=3))
    X = torch.cat([(context.U - model.u_mean) / model.u_std, (context.F - model.f_mean) / model.f_std])
    norms, layers = list(model.norms), list(model.projections)  # pyright: ignore

    def layer_norm(i: int, Y: torch.Tensor) -> torch.Tensor:
        centred = Y - Y.mean(dim=0)
        return (
            norms[i].weight[:, None] * centred / (centred.square().mean(dim=0) + 1e-5).sqrt() + norms[i].bias[:, None]
        )

    def attention(i: int, X: torch.Tensor) -> torch.Tensor:
        q, k = layers[i](X).chunk(2, dim=-1)
        return q @ k.mT / 3**0.5

    h = float(model.shape.x.point_weight or 0)
    X = layer_norm(0, X)
    X = X + layer_norm(1, h * attention(0, X) @ X)
    kernel = model.unit * (model.matrix[0] @ attention(1, X)[:, :9] + model.bias)  # pyright: ignore
    torch.testing.assert_close(model(context).values, kernel)


@pytest.mark.parametrize(
    ("name", "d", "dk", "expected"),
    [("nao", 302, dk, n) for dk, n in ((5, 12783 + 3), (10, 18843 + 3), (20, 30963 + 3), (40, 55203 + 3))]
    + [("nao", d, 10, n) for d, n in ((100, 10763 + 3), (50, 8763 + 3), (30, 7963 + 3))]
    + [("discrete-nao", 302, 10, 16526), ("softmax-nao", 302, 10, 18846), ("nao-u", 302, 10, 18843)],
)
def test_parameter_counts_are_the_papers(name, d, dk, expected):
    """Plus the three scalars that the released code left untrained."""
    assert (
        build(name, radial_context(N=880, d=d, batch=()), NAOOptions(dk=dk, mixer="network")).parameter_count
        == expected
    )


@pytest.mark.parametrize(("name", "paper"), [("afno", 19605), ("autoencoder", 16424)])
def test_sizes_within_two_percent_of_the_papers(name, paper):
    model = build(name, radial_context(N=880, d=302, batch=()), MAPS[name].Options(dk=10))
    assert abs(model.parameter_count / paper - 1) < 0.02


@pytest.mark.parametrize(
    ("name", "d", "options", "expected"),
    [
        ("nao", 50, NAOOptions(dk=40, normaliser="array", mixer="network"), 189234),
        ("nao", 20, NAOOptions(dk=20, normaliser="array", mixer="network", hidden=(64, 128)), 89778),
        ("discrete-nao", 50, NAOOptions(dk=40, normaliser="array"), 662163),
    ],
)
def test_darcy_counts_with_layer_norm_over_the_array(name, d, options, expected):
    assert build(name, CONTEXTS["square"](n=21, d=d, batch=()), options).parameter_count == expected


@pytest.mark.parametrize("kind", ["square", "vector"])
def test_functions_of_two_points_in_blocks(kind, monkeypatch):
    """The same values and gradients when a block holds a few rows only."""
    context = CONTEXTS[kind](batch=(2,))
    model = build("nao", context, NAOOptions(dk=3, heads=2, mixer="network"))
    whole = model(context).values
    gradient = torch.autograd.grad(whole.square().sum(), list(model.parameters()))
    monkeypatch.setattr(network, "BLOCK", 3 * context.y.size)
    blocks = model(context).values
    torch.testing.assert_close(blocks, whole)
    torch.testing.assert_close(torch.autograd.grad(blocks.square().sum(), list(model.parameters())), gradient)


@pytest.mark.parametrize("options", [{"dk": 0}, {"layers": 0}, {"heads": 0}, {"waves": 0}, {"hidden": (0, 1)}])
def test_options_must_be_positive(options):
    with pytest.raises(InputError, match="at least 1"):
        NAOOptions(**options)


def test_a_context_of_another_kind_is_refused():
    model = build("nao", radial_context())
    square = CONTEXTS["square"]()
    with pytest.raises(InputError, match="the model takes 1 component"):
        model(square)
    vector = grids.radii(11 / 12, 12).with_components(2)
    with pytest.raises(InputError, match="got 2 component"):
        model(Context(radial_context().U, radial_context().F, vector, grids.point()))


def test_constant_training_values_are_refused():
    model = build("nao", radial_context())
    with pytest.raises(InputError, match="nothing to learn from"):
        model.standardise(torch.ones(3, 4), torch.randn(3, 4))
