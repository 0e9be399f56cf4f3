"""Attention that starts at an inverse: against the iteration written out, and what it does."""

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from examples import CONTEXTS, radial_context, square_context, vector_context
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.metrics import operator_error, relative_difference
from kernelmap.core.systems import SystemSet
from kernelmap.io.models import load_model
from kernelmap.maps import MAPS, NAO, DiscreteNAO, NAOOptions, SoftmaxNAO
from kernelmap.maps.componentwise import Componentwise
from kernelmap.maps.nao.functions import SpectralFunction
from kernelmap.maps.nao.start import F_SIZE, LARGEST
from kernelmap.training import Recipe, train

D = 6


def options(**changes) -> NAOOptions:
    return NAOOptions(
        **{"dk": D, "layers": 3, "mixer": "spectral", "normaliser": "uncentred", "start": "inverse"} | changes
    )


def started(context: Context, **changes) -> NAO:
    torch.manual_seed(0)
    model = NAO(ContextShape.of(context), options(**changes)).double()
    model.standardise(context.U, context.F)
    model.begin(lambda: [context])
    return model


def alike(context: Context) -> Context:
    """Contexts whose inputs differ by a tenth, and whose responses are those of one kernel."""
    U = context.U[:1] + 0.1 * context.U
    kernel = torch.randn(context.x.size, context.y.size, generator=torch.Generator().manual_seed(1)).double()
    return Context(U, kernel @ U, context.y, context.x)


def standardised(context: Context) -> tuple[Float[Tensor, "b N d"], Float[Tensor, "b M d"]]:
    U, F = (((x - x.mean()) / x.std()) for x in (context.U, context.F))
    return U, F_SIZE * F


@pytest.mark.parametrize("kind", ["radial", "square"])
@pytest.mark.parametrize("heads", [1, 2])
def test_the_start_is_the_newton_schulz_iteration(kind, heads):
    context = alike(CONTEXTS[kind]())
    model = started(context, heads=heads, dk=D // heads)
    with torch.no_grad():
        for parameter in model.w_f.parameters() if model.w_f is not None else ():
            if parameter.ndim == 2 and kind == "square":
                parameter.zero_()  # the spectral part beside the delta
    h_u, h_f = model.geometry(context)[1]
    U, F = standardised(context)
    grams = (U.mT * h_u) @ U + (F.mT * h_f) @ F
    inverse = torch.linalg.inv(grams.mean(dim=0))
    inverse = inverse * min(1.0, LARGEST / float(torch.linalg.eigvals(inverse @ grams).real.max()))
    for layer in range(2):
        gram = (U.mT * h_u) @ U + (F.mT * h_f) @ F
        step = torch.eye(D).double() - (9 / 4) ** layer / 3 * inverse @ gram
        U, F = U @ step, F @ step
    unit = context.F.std() / F_SIZE / context.U.std() * model.shape.y.jacobian
    response = unit * F @ ((9 / 4) ** 2 * inverse) @ (U.mT * context.y.value_weights) @ context.U
    assert relative_difference(model(context).apply(context.U), response) < 1e-10


def test_more_layers_come_closer_before_any_training():
    context = alike(square_context(6))

    @torch.no_grad()
    def error(**changes) -> float:
        model = started(context, **changes)
        for function in (model.w_u, model.w_f):
            assert isinstance(function, SpectralFunction)
            function.M.zero_()
        return float(operator_error(model(context).apply(context.U), context.F, context.x).mean())

    errors = [error(layers=layers) for layers in (1, 2, 3)]
    assert errors[0] > 2 * errors[1] > 2 * errors[2]
    assert error(layers=3, start="random") > 0.5


def test_each_component_starts_by_itself():
    context = alike(vector_context())
    model = MAPS["nao"].build(ContextShape.of(context), options(per_component=True)).double()
    model.standardise(context.U.mT, context.F.mT)
    model.begin(lambda: [context])
    assert isinstance(model, Componentwise)
    alone, mine = started(model.contexts(context)[1]), model.maps[1]
    assert isinstance(mine, NAO)
    torch.testing.assert_close(mine.linear_layers[0].weight, alone.linear_layers[0].weight)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (NAO, {"mixer": "network"}),
        (NAO, {"normaliser": "tokens"}),
        (SoftmaxNAO, {}),
        (DiscreteNAO, {}),
    ],
)
def test_maps_without_such_an_inverse_refuse_it(kind, changes):
    with pytest.raises(InputError, match="leave out --start"):
        kind(ContextShape.of(square_context()), options(**changes))


def test_rank_beyond_the_pairs_can_still_be_learned():
    """What is left of W_Q keeps its random start: were both zero, neither would ever move."""
    model = started(alike(square_context()), dk=D + 2)
    response = model(square_context()).apply(square_context().U)
    response.square().sum().backward()
    gradient = model.linear_layers[-1].weight.grad
    assert gradient is not None
    assert (gradient[-2:].norm(dim=1) > 0).all()


def test_training_begins_there(tmp_path):
    context = alike(square_context(batch=(8,)))
    systems = SystemSet(tuple(str(i) for i in range(8)), context.U.mT, context.F.mT, context.y, context.x)
    recipe = Recipe(epochs=1, lr=1e-12, validation_systems=2, precision="float64", every=1, random_draws=True)
    losses = [
        train("nao", options(start=start), systems, D, recipe, tmp_path / start).best_loss
        for start in ("random", "inverse")
    ]
    assert losses[1] < 0.5 * losses[0]
    assert load_model(tmp_path / "inverse")[0].options.start == "inverse"


def test_softmax_leaves_the_mean_too():
    """Adding a constant to all queries' updates changes a centred layer only where w varies."""
    context = radial_context()
    torch.manual_seed(0)
    plain, centred = (
        SoftmaxNAO(ContextShape.of(context), NAOOptions(layers=2, normaliser=name)).double()
        for name in ("uncentred", "continuous")
    )
    centred.load_state_dict(plain.state_dict())
    assert relative_difference(plain(context).values, centred(context).values) > 1e-6
