"""The head of the order-free NAO that fits what the others leave of the context."""

import pytest
import torch
from torch import Tensor

from examples import CONTEXTS
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape, Domain
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.metrics import relative_difference
from kernelmap.maps import SetNAO, SetNAOOptions
from kernelmap.maps.nao.set_nao.interpolate import Interpolation
from kernelmap.maps.nao.set_nao.modes import Modes

WAVES, D = 60, 12
UNEVEN = torch.linspace(0, 1, 121, dtype=torch.float64) ** 1.2
LINE = grids.from_points(UNEVEN)


def inputs(count: int, seed: int, grid: Grid = LINE, power: float = 1.0) -> Tensor:
    """Random sums of cosines whose size falls as 1 / (1 + k), to a power."""
    modes = Modes(Domain.of(grid, 1.0), "cosines", WAVES)
    normal = torch.randn(WAVES, count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return modes(grid) @ (normal / (1 + torch.arange(WAVES, dtype=torch.float64)[:, None]) ** power)


def dual(U: Tensor, layers: int = 30) -> Tensor:
    """Tᵀ diag(h)."""
    modes = Modes(Domain.of(LINE, 1.0), "cosines", WAVES)
    left, right = Interpolation(modes, layers)(U, torch.eye(U.shape[-1], dtype=U.dtype), LINE)
    return left @ right * modes.weights(LINE)


def test_the_head_is_dual_to_the_context():
    U = inputs(D, 0)
    assert (dual(U) @ U - torch.eye(D, dtype=U.dtype)).abs().max() < 1e-9


def test_it_responds_as_little_to_other_inputs_as_theory_allows():
    """The mean of |Tᵀ diag(h) u|² is d / (n - d - 1); of the dual of least norm it is many times that."""
    found, least_norm = [], []
    for seed in range(10):
        U, others = inputs(D, 2 * seed), inputs(200, 2 * seed + 1)
        found.append(float((dual(U) @ others).square().sum(dim=0).mean()))
        least_norm.append(float((torch.linalg.pinv(U) @ others).square().sum(dim=0).mean()))
    theory = D / (WAVES - D - 1)
    mean = sum(found) / len(found)
    assert 0.9 * theory < mean < 1.3 * theory
    assert sum(least_norm) / len(least_norm) > 2 * mean


def test_strong_waves_do_not_leak_into_weak_ones():
    """Of inputs that fall as 1 / (1 + k)², on uneven points; by quadrature alone it would be 1.14 times theory."""
    found = [
        float((dual(inputs(D, 2 * seed, power=2)) @ inputs(200, 2 * seed + 1, power=2)).square().sum(dim=0).mean())
        for seed in range(6)
    ]
    assert sum(found) / len(found) < 1.1 * D / (WAVES - D - 1)


def test_more_inputs_than_waves_do_no_harm():
    U = inputs(WAVES + 20, 0)
    response = dual(U, layers=12) @ U
    assert relative_difference(U @ response, U) < 1e-6


def build(context: Context, **options) -> SetNAO:
    torch.manual_seed(0)
    model = SetNAO(ContextShape.of(context), SetNAOOptions(**{"waves": 5, "layers": 1, **options})).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def responses(U: Tensor) -> Tensor:
    """Of a system that is not linear."""
    return U.cumsum(dim=0) / len(U) + 0.1 * U.square()


@pytest.mark.parametrize("basis", ["cosines", "sines"])
def test_the_map_fits_its_context_where_it_did_not(basis):
    U = inputs(D, 0)
    inside = Modes(Domain.of(LINE, 1.0), basis, 1).inside(LINE)[:, None]
    context = Context(U, responses(U) * inside, LINE, LINE)
    without, fitted = (
        relative_difference(build(context, basis=basis, waves=20, interpolation=layers)(context).apply(U), context.F)
        for layers in (0, 20)
    )
    assert without > 0.05
    assert fitted < 1e-8


@pytest.mark.parametrize("kind", list(CONTEXTS))
def test_order_and_units_do_not_matter(kind):
    context = CONTEXTS[kind](batch=(2,))
    model = build(context, interpolation=6)
    kernel = model(context).values
    permuted = context.select(torch.randperm(context.d, generator=torch.Generator().manual_seed(3)))
    assert relative_difference(model(permuted).values, kernel) < 1e-9
    for factor in (1e-6, 1e6):
        together = Context(factor * context.U, factor * context.F, context.y, context.x)
        alone = Context(context.U, factor * context.F, context.y, context.x)
        assert relative_difference(model(together).values, kernel) < 1e-9
        assert relative_difference(model(alone).values, factor * kernel) < 1e-9


def test_negative_layers_are_refused():
    with pytest.raises(InputError, match="must not be negative, got -1"):
        SetNAOOptions(interpolation=-1)
