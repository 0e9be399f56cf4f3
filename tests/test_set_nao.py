"""The order-free NAO: its layers, its limit, what it is invariant to, and what it learns to see."""

from math import log

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from examples import CONTEXTS
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.grids import Grid
from kernelmap.core.metrics import relative_difference
from kernelmap.maps import SetNAO, SetNAOOptions
from kernelmap.maps.nao.set_nao import OtherPairsLoss
from kernelmap.maps.nao.set_nao.attention import attend, one_way, other_way
from kernelmap.maps.nao.set_nao.newton_schulz import START, inverse_gram, layer_coefficients
from kernelmap.maps.nao.set_nao.tokens import root_mean_square

ANY_CONTEXT = pytest.mark.parametrize("kind", list(CONTEXTS))


def build(context: Context, *, spread: float = 0.1, **options) -> SetNAO:
    """A map whose functions are not where they start."""
    torch.manual_seed(0)
    model = SetNAO(ContextShape.of(context), SetNAOOptions(**{"waves": 3, **options})).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(spread * torch.randn_like(parameter))
    return model


def at_start(model: SetNAO) -> SetNAO:
    """With the layers' scalars where they start."""
    with torch.no_grad():
        model.log_bernstein.copy_(torch.tensor([log(b) for b in START]))
    return model


def uneven(n: int, seed: int = 1) -> Grid:
    """Uneven nodes of the unit square, with the weights of the trapezoidal rule."""
    steps = torch.rand(n - 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.3
    axis = grids.from_points(torch.cat([torch.zeros(1, dtype=torch.float64), steps.cumsum(0)]) / steps.sum())
    points = torch.cartesian_prod(axis.points[:, 0], axis.points[:, 0])
    return Grid(points, torch.outer(axis.weights, axis.weights).flatten())


def smooth_context(grid: Grid, d: int = 6, seed: int = 0) -> Context:
    """Sums of three waves on the unit square, the same functions on any grid."""
    generator = torch.Generator().manual_seed(seed)
    waves, phases = (5 * torch.rand(d, 3, 2, generator=generator, dtype=torch.float64) for _ in range(2))
    t = grid.points
    U = torch.cos(torch.einsum("djk,nk->ndj", waves, t) + phases[..., 0]).sum(dim=-1)
    kernel = torch.exp(-3 * torch.cdist(t, t).square())
    return Context(U, (kernel * grid.weights) @ U, grid, grid)


@given(st.lists(st.floats(-4, 4), min_size=3, max_size=3))
@settings(max_examples=200, deadline=None)
def test_layers_map_singular_values_into_the_unit_interval(raw):
    c0, c1, c2 = layer_coefficients(torch.tensor([raw], dtype=torch.float64))[0]
    s = torch.linspace(0, 1, 2001, dtype=torch.float64)[1:]
    values = s * (c0 + c1 * s**2 + c2 * s**4)
    assert values.min() > 0
    assert values.max() <= 1 + 1e-12


def test_the_start_is_left_alone_by_the_bound():
    c = layer_coefficients(torch.tensor([[log(b) for b in START]], dtype=torch.float64))[0]
    torch.testing.assert_close(c, torch.tensor([15.0, -10.0, 3.0], dtype=torch.float64) / 8)


def test_layers_tend_to_the_inverse():
    A = torch.randn(2, 9, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    S = A.mT @ A
    S = S / S.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
    start = torch.tensor([[log(b) for b in START]], dtype=torch.float64)
    errors = [
        float((inverse_gram(S, layer_coefficients(start.expand(n, 3))) @ S - torch.eye(5)).abs().max())
        for n in (2, 4, 20)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-10


def textbook(model: SetNAO, context: Context) -> Tensor:
    """The kernel with the mixers as matrices and every layer's attention matrices built."""
    y, x, N = context.y, context.x, context.y.size
    h, h_x = model.mean.y.weights(y), model.mean.x.weights(x)
    u_size, f_size = root_mean_square(context.U, h), root_mean_square(context.F, h_x)
    U, F = context.U / u_size, context.F / f_size
    W, root = torch.diag(h), torch.diag(h.sqrt())
    on_grid = model.mixer.on(y)
    spectral = [on_grid.psi @ M @ on_grid.psi.mT @ W for M in on_grid.M]
    C = torch.cat([torch.diag(c) + part for c, part in zip(on_grid.c, spectral, strict=True)])
    root_C = torch.block_diag(*[root] * len(on_grid.c)) @ C
    left, right = model.mean.factors(x, y)
    m = left @ right
    response = m @ W @ U
    products = [(h_x[:, None] * each * response).sum((-2, -1), keepdim=True) for each in (F, response)]
    s = products[0] / products[1]
    G = F - s * response
    V = root_C @ U
    nu = torch.linalg.matrix_norm(V)[..., None, None]
    V = V / nu
    for c0, c1, c2 in layer_coefficients(model.log_bernstein):
        A_vv, A_gv = V @ V.mT, G @ V.mT
        V, G = c0 * V + c1 * A_vv @ V + c2 * A_vv @ (A_vv @ V), c0 * G + c1 * A_gv @ V + c2 * A_gv @ (A_vv @ V)
    R = G @ V.mT @ root_C @ torch.diag(1 / h) / nu
    K = s * m + R
    if model.alpha is not None:
        U_L = U @ torch.linalg.lstsq(root_C @ U / nu, V).solution
        projector = W @ U_L @ V.mT @ root_C @ torch.diag(1 / h) / nu
        K = K + model.alpha * R.mT @ (torch.eye(N, dtype=U.dtype) - projector)
    return K * f_size / u_size / model.mean.y.volume


@ANY_CONTEXT
@pytest.mark.parametrize("heads", [1, 2])
def test_unrolled_equals_the_textbook_in_values_and_gradients(kind, heads):
    context = CONTEXTS[kind](batch=(2,))
    model = build(context, heads=heads, layers=4)
    weights = torch.randn_like(context.F[..., :1] @ context.U[..., :1].mT)
    results = []
    for kernel in (model(context).values, textbook(model, context)):
        model.zero_grad()
        (kernel * weights).sum().backward()
        gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
        results.append((kernel.detach(), gradients))
    (ours, by_ours), (theirs, by_theirs) = results
    assert relative_difference(ours, theirs) < 1e-10
    assert by_ours.keys() == by_theirs.keys() == dict(model.named_parameters()).keys()
    largest = max(float(g.norm()) for g in by_theirs.values())
    for name, gradient in by_ours.items():
        assert float((gradient - by_theirs[name]).norm()) < 1e-10 * largest, name


@pytest.mark.parametrize("basis", ["cosines", "sines"])
def test_with_many_layers_the_kernel_reproduces_its_context_on_any_grid(basis):
    context = smooth_context(uneven(9))
    model = at_start(build(context, layers=40, basis=basis))
    inside = model.mixer.modes.inside(context.y).bool()
    context = Context(context.U, context.F * inside[:, None], context.y, context.x)
    assert relative_difference(model(context).apply(context.U), context.F) < 1e-8


def test_the_limit_is_the_regularised_estimator_of_appendix_b():
    context = smooth_context(uneven(7), d=5)
    model = at_start(build(context, layers=40))
    assert model.alpha is not None
    model.alpha.data.zero_()
    w, N = context.y.weights, context.y.size
    mixer, (left, right) = model.mixer.on(context.y), model.mean.factors(context.x, context.y)
    C = torch.diag(mixer.c[0]) + mixer.psi @ mixer.M[0] @ mixer.psi.mT @ torch.diag(mixer.h)
    m, U, F = left @ right, context.U, context.F
    response = m @ (w[:, None] * U)
    s = (w[:, None] * F * response).sum() / (w[:, None] * response**2).sum()
    metric = C.mT @ torch.diag(w) @ C
    K = s * m + (F - s * response) @ torch.linalg.solve(U.mT @ metric @ U, U.mT @ metric) / w
    assert K.shape == (N, N)
    assert relative_difference(model(context).values, K) < 1e-8


@ANY_CONTEXT
def test_order_does_not_matter(kind):
    context = CONTEXTS[kind]()
    model = build(context)
    kernel = model(context).values
    permuted = model(context.select(torch.randperm(context.d, generator=torch.Generator().manual_seed(3)))).values
    assert relative_difference(permuted, kernel) < 1e-9


@ANY_CONTEXT
@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1e3, 1e6])
def test_units_do_not_matter(kind, factor):
    context = CONTEXTS[kind]()
    model = build(context)
    kernel = model(context).values
    together = Context(factor * context.U, factor * context.F, context.y, context.x)
    alone = Context(context.U, factor * context.F, context.y, context.x)
    assert relative_difference(model(together).values, kernel) < 1e-9
    assert relative_difference(model(alone).values, factor * kernel) < 1e-9


@ANY_CONTEXT
def test_takes_any_number_of_pairs_and_single_precision(kind):
    model = build(CONTEXTS[kind]())
    for d in (1, 2, 40):
        context = CONTEXTS[kind](d=d)
        double = model(context)
        assert torch.isfinite(double.values).all()
        single = build(context).float()(context.to(torch.float32))
        assert single.values.dtype == torch.float32
        assert relative_difference(single.values.double(), double.values) < 1e-3


def test_single_precision_holds_the_squares_of_tiny_and_of_huge_values():
    context = CONTEXTS["square"]().to(torch.float32)
    model = build(context).float()
    kernel = model(context).values
    for factor in (1e-25, 1e25):
        together = Context(factor * context.U, factor * context.F, context.y, context.x)
        assert relative_difference(model(together).values, kernel) < 1e-4


def test_heads_do_not_start_alike():
    context = CONTEXTS["square"]()
    model = build(context, spread=0, heads=2)
    model(context).values.square().sum().backward()
    assert model.mixer.log_c.grad is not None
    first, second = model.mixer.log_c.grad
    assert relative_difference(first, second) > 1e-3


def test_takes_inputs_and_outputs_on_different_domains():
    y, x = grids.from_points([0.0, 0.1, 0.35, 0.5, 0.8, 1.0]), grids.rectangle(4)
    context = Context(torch.randn(6, 3, dtype=torch.float64), torch.randn(16, 3, dtype=torch.float64), y, x)
    model = at_start(build(context, layers=40))
    assert model.alpha is None
    assert relative_difference(model(context).apply(context.U), context.F) < 1e-8


def test_is_a_function_of_position_not_of_the_grid():
    """Kernels at common nodes converge with the error of the trapezoidal rule, h²."""
    model = build(smooth_context(trapezoidal(9)), layers=4)

    def values(n: int) -> Tensor:
        step = (n - 1) // 8
        kernel = model(smooth_context(trapezoidal(n))).values.unflatten(0, (n, n)).unflatten(-1, (n, n))
        return kernel[::step, ::step, ::step, ::step]

    finest = values(65)
    errors = [relative_difference(values(n), finest) for n in (9, 17, 33)]
    assert errors[0] / errors[1] > 3.3
    assert errors[1] / errors[2] > 3.3


def trapezoidal(n: int) -> Grid:
    axis = grids.from_points(torch.linspace(0, 1, n, dtype=torch.float64))
    points = torch.cartesian_prod(axis.points[:, 0], axis.points[:, 0])
    return Grid(points, torch.outer(axis.weights, axis.weights).flatten())


def test_sines_do_not_see_the_boundary():
    context = smooth_context(grids.rectangle(6))
    model = build(context, basis="sines")
    inside = model.mixer.modes.inside(context.y).bool()
    other = context.U.clone()
    other[~inside] += torch.randn(int((~inside).sum()), context.d, dtype=torch.float64)
    kernels = [model(Context(u, context.F, context.y, context.x)).values for u in (context.U, other)]
    torch.testing.assert_close(*kernels)
    assert kernels[0][:, ~inside].abs().max() < 1e-12 * kernels[0].abs().max()


@pytest.mark.parametrize("sign", [1, -1])
def test_the_other_way_round_completes_a_symmetric_kernel(sign):
    """R ± Rᵀ (1 - Π) misses only (1 - Π)ᵀ E (1 - Π) of a symmetric or antisymmetric E."""
    grid = trapezoidal(5)
    generator = torch.Generator().manual_seed(0)
    A, U = (torch.randn(25, n, dtype=torch.float64, generator=generator) for n in (25, 8))
    E = A + sign * A.mT
    G = (E * grid.weights) @ U
    model = build(Context(U, G, grid, grid))
    q, Z = attend(U, model.mixer.on(grid), layer_coefficients(torch.tensor(START).double().log().expand(60, 3)))
    (left, right), (back, there) = one_way(G, q, Z), other_way(U, G, q, Z, grid.weights)
    missed = torch.eye(25, dtype=torch.float64) - grid.weights[:, None] * (U @ q @ Z.mT)
    assert relative_difference(left @ right + sign * (back @ there), E - missed.mT @ E @ missed) < 1e-9
    assert ((back @ there * grid.weights) @ U).abs().max() < 1e-9 * G.abs().max()


def test_the_pull_is_felt_in_training_only():
    context = CONTEXTS["square"](d=24)
    model = build(context, pull=1.0)
    loss = OtherPairsLoss(model, context.y, context.x)
    with_pull = loss(context.U, context.F, 0)
    loss.eval()
    torch.testing.assert_close(with_pull - loss(context.U, context.F, 0), model.deviation().expand(3))
    assert model.deviation().item() > 0
    assert build(context, spread=0).deviation().item() == 0


def test_the_loss_is_of_pairs_the_context_does_not_hold():
    context = CONTEXTS["square"](d=24)
    model = build(context)
    loss = OtherPairsLoss(model, context.y, context.x).eval()
    F = context.F.clone()
    F[..., -loss.targets :] *= 2
    assert not torch.allclose(loss(context.U, F, 0), loss(context.U, context.F, 0))
    seen = {round(loss(context.U, context.F, seed).sum().item(), 9) for seed in range(20)}
    assert len(seen) > 2
