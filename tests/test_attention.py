"""NAO's implicit evaluation against the printed formulas, and memory that does not grow with the square of N."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import CONTEXTS, radial_context
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.maps import NAO, NAOOptions
from kernelmap.maps.nao.attention import softmax_attention, softmax_rows
from kernelmap.paper.benchmarks.textbook import textbook_kernel, textbook_response


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(sorted(CONTEXTS)),
    size=st.integers(2, 5),
    d=st.integers(2, 7),
    dk=st.integers(1, 6),
    layers=st.integers(1, 4),
    heads=st.integers(1, 3),
    mixer=st.sampled_from(["spectral", "network"]),
    batch=st.sampled_from([(), (1,), (2,), (2, 3)]),
    shared=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_implicit_evaluation_is_the_textbook_one(kind, size, d, dk, layers, heads, mixer, batch, shared, seed):
    torch.manual_seed(seed)
    context = CONTEXTS[kind](size, d, batch, shared, seed)
    model = NAO(ContextShape.of(context), NAOOptions(dk, layers, heads, mixer=mixer, waves=3)).double()
    model.standardise(context.U + 0.3, 2 * context.F - 0.1)
    # The plain formulas need the shared inputs of a batch repeated.
    batch_shape = context.batch_shape
    repeated = Context(
        context.U.expand(*batch_shape, *context.U.shape[-2:]).contiguous(), context.F, context.y, context.x
    )
    ours, theirs = model(context).apply(context.U), textbook_response(model, repeated)
    torch.testing.assert_close(
        model(context).values, textbook_kernel(model, repeated), rtol=0, atol=scaled(theirs, model)
    )
    assert relative(ours, theirs) < 1e-10
    weights = torch.randn(theirs.shape, dtype=torch.float64)
    parameters = list(model.parameters())
    gradients = [
        torch.autograd.grad((weights * f).sum(), parameters, allow_unused=True, retain_graph=True)
        for f in (ours, theirs)
    ]
    scale = max(float(g.norm()) for g in gradients[1] or () if g is not None)
    for mine, textbook in zip(gradients[0] or (), gradients[1] or (), strict=True):
        mine, textbook = (torch.zeros(()) if g is None else g for g in (mine, textbook))
        assert float((mine - textbook).norm()) <= 1e-10 * scale


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).detach().norm() / b.detach().norm())


def scaled(response: torch.Tensor, model: NAO) -> float:
    return 1e-10 * max(1.0, float(response.detach().abs().max())) * float(model.unit)


def test_a_long_grid_needs_no_square_array():
    """At N = 30 000 one N x N array in float32 would take 3.6 GB; the tracked peak stays below 40 token arrays."""
    N, d = 30_000, 8
    context = radial_context(N, d, ()).to(torch.float32)
    model = NAO(ContextShape.of(context), NAOOptions(dk=4))
    with torch.profiler.profile(profile_memory=True) as profile:
        model(context).apply(context.U).sum().backward()
    largest = max(event.cpu_memory_usage for event in profile.events() or [])
    assert largest < 40 * N * d * 4


def test_softmax_attention_is_the_plain_formula():
    torch.manual_seed(0)
    q, k, v = (
        torch.randn(2, 3, 7, 4).double(),
        torch.randn(2, 3, 7, 4).double(),
        torch.randn(2, 7, 5).double(),
    )
    h = torch.rand(7).double() + 0.1
    weights = (q @ k.mT / 2).exp() * h
    plain = (weights / weights.sum(dim=-1, keepdim=True)) @ v[:, None]
    torch.testing.assert_close(softmax_attention(q, k, h, v), plain)
    rows = torch.randn(3, 2, 7).double()
    matrix = weights / weights.sum(dim=-1, keepdim=True)
    torch.testing.assert_close(softmax_rows(rows, q, k, h), (rows @ matrix).sum(dim=1))


def test_a_finer_grid_gives_the_same_kernel():
    """The same functions sampled twice as finely: NAO's kernel converges, at the rate of the Riemann sum."""

    def sampled(N: int) -> Context:
        grid = grids.radii(11 / N, N)
        r = grid.points
        waves = torch.arange(1, 6, dtype=torch.float64)
        return Context(torch.sin(r * waves) * torch.exp(-r / 4), torch.cos(waves)[None], grid, grids.point())

    torch.manual_seed(1)
    model = NAO(ContextShape.of(sampled(200)), NAOOptions(dk=4)).double()
    kernels = [model(sampled(N))(torch.linspace(0.5, 10.5, 50)) for N in (200, 400, 800, 1600)]
    errors = [abs(kernel - kernels[-1]).max() for kernel in kernels[:-1]]
    assert errors[1] < 0.65 * errors[0]
    assert errors[2] < 0.45 * errors[1]


@pytest.mark.parametrize("normaliser", ["continuous", "tokens", "array"])
def test_a_grid_elsewhere_is_refused(normaliser):
    from kernelmap.core.errors import InputError

    context = radial_context()
    model = NAO(ContextShape.of(context), NAOOptions(normaliser=normaliser)).double()
    metres = Context(context.U, context.F, grids.radii(11_000 / 24, 24), context.x)
    with pytest.raises(InputError, match="Check its units"):
        model(metres)
