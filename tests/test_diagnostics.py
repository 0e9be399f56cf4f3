"""Diagnostics: each fires where it should, and does not where it must not."""

import pytest
import torch

from kernel1d_systems import model, waves
from kernelmap.core import grids
from kernelmap.core.context import Context, distinct_inputs
from kernelmap.core.errors import InputError
from kernelmap.core.places import Places
from kernelmap.discovery import discover
from kernelmap.discovery.check import Check, check_heldout
from kernelmap.discovery.diagnostics import _classical


def seen(context: Context) -> str:
    return " ".join(diagnostic.seen for diagnostic in discover(model(), context).diagnostics)


def changed(context: Context, F: torch.Tensor) -> Context:
    return Context(context.U, F, context.y, context.x)


def test_good_data_are_green() -> None:
    assert seen(waves(100, noise=0.001)[0]) == ""


def test_few_pairs() -> None:
    assert "Only 12 pairs" in seen(waves(12)[0])
    assert "Only" not in seen(waves(30)[0])


def test_an_f_that_no_kernel_explains() -> None:
    context, _ = waves(80)
    nonsense = torch.randn(1, 80, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert "explained by no kernel" in seen(changed(context, nonsense))
    assert "explained by no kernel" not in seen(waves(80, noise=0.1)[0])


def test_a_kernel_that_is_hardly_known() -> None:
    assert "The kernel is" in seen(waves(20, noise=0.3)[0])
    assert "The kernel is" not in seen(waves(100, noise=0.001)[0])


def test_one_huge_value_is_named_with_its_place() -> None:
    context, _ = waves(80, noise=0.01)
    F = context.F.clone()
    F[0, 17] *= 1e6
    places = Places(torch.linspace(0, 7.9, 80, dtype=torch.float64)[:, None], ("x",))
    found = discover(model(), Context(context.U, F, context.y, context.x, places))
    assert found.residuals[0].pair == 17
    assert any("pair 17 (x = 1.7)" in diagnostic.seen for diagnostic in found.diagnostics)
    assert "standard deviations from what the others" not in seen(context)


def test_a_constant_input_is_refused_or_named() -> None:
    context, _ = waves(40)
    with pytest.raises(InputError, match="nothing to discover"):
        discover(model(), Context(0 * context.U, context.F, context.y, context.x))
    lags = Context(torch.ones_like(context.U), torch.ones_like(context.F), context.y, context.x)
    assert "The kernel is" in seen(lags)


def test_inputs_that_see_little() -> None:
    context, kernel = waves(60)
    near = context.U * (context.y.points < 0.5)
    F = (kernel * context.y.weights) @ near
    assert "hardly see the kernel" in seen(Context(near, F[None], context.y, context.x))
    assert "hardly see" not in seen(context)


def test_repeats_of_a_pair_are_kept_back_together() -> None:
    context, _ = waves(40, noise=0.05)
    many = context.select(torch.arange(40).repeat(5))
    check = check_heldout(model(), many)
    assert check is not None
    kept = check.heldout
    assert kept.d == 40
    assert len(distinct_inputs(kept.U).unique()) == 8


def test_expected_error_is_that_of_the_kernel() -> None:
    """On average over noise, the error is the expected one."""
    ratios = []
    for seed in range(8):
        context, kernel = waves(60, seed=seed, noise=0.02)
        found = discover(model(), context)
        weights = found.identifiability.rho * context.y.weights
        error = (weights * (found.kernel.values[0] - kernel) ** 2).sum() / (weights * kernel**2).sum()
        ratios.append(float(error.sqrt()) / found.identifiability.expected_error)
    assert 0.2 < sum(ratios) / len(ratios) < 1.6
    assert grids.point().is_point


def spiked_waves(follows: bool) -> tuple[Context, torch.Tensor]:
    """One in eight inputs has a huge value at one point, which is real (`follows`) or a mistake."""
    context, kernel = waves(80, noise=0.01)
    U = context.U.clone()
    for pair in range(0, 80, 8):
        U[2 + pair // 4, pair] += 100
    F = context.F + (kernel * context.y.weights) @ (U - context.U) if follows else context.F
    return Context(U, F, context.y, context.x), kernel


def test_a_huge_value_of_u_that_f_does_not_follow() -> None:
    wrong, kernel = spiked_waves(follows=False)
    found = discover(model(), wrong)
    named = [diagnostic for diagnostic in found.diagnostics if "f does not follow" in diagnostic.seen]
    assert "pair 0, pair 8" in named[0].seen
    assert "f does not follow" not in seen(spiked_waves(follows=True)[0])
    # Who follows the remedy knows the kernel better.
    rest = wrong.select(torch.tensor([pair for pair in range(80) if pair % 8]))
    errors = [float((kernels.values[0] - kernel).norm()) for kernels in (discover(model(), rest).kernel, found.kernel)]
    assert errors[0] < 0.3 * errors[1]


def shuffled() -> Context:
    context, _ = waves(80, noise=0.05)
    return changed(context, context.F[:, torch.randperm(80, generator=torch.Generator().manual_seed(0))])


def near_zero() -> Context:
    """Inputs that vary on short lengths only."""
    context, kernel = waves(60, noise=0.01)
    U = context.U * (context.y.points < 0.5)
    F = (kernel * context.y.weights) @ U
    return Context(U, F[None], context.y, context.x)


@pytest.mark.parametrize(
    ("said", "before", "after", "farther"),
    [
        ("Only 12 pairs", lambda: waves(12, noise=0.05)[0], lambda: waves(60, noise=0.05)[0], 0.0),
        ("The kernel is known to about", lambda: waves(20, noise=0.3)[0], lambda: waves(800, noise=0.3)[0], 0.2),
        ("explained by no kernel", shuffled, lambda: waves(80, noise=0.05)[0], 0.0),
        ("hardly see the kernel", near_zero, lambda: waves(60, noise=0.01)[0], 0.5),
    ],
)
def test_who_follows_the_remedy_knows_the_kernel_better(said, before, after, farther) -> None:
    """More pairs, f in the order of u, inputs that vary on other lengths too: where pairs of either look."""
    kernel, looked = waves(30)[1], waves(30)[0].y.points[:, 0] > farther
    found = [discover(model(), context()) for context in (after, before)]
    assert [any(said in diagnostic.seen for diagnostic in one.diagnostics) for one in found] == [False, True]
    errors = [float((one.kernel.values[0] - kernel)[looked].norm()) for one in found]
    assert errors[0] < 0.6 * errors[1]


def test_a_huge_value_of_f_may_be_left_out() -> None:
    """Nothing is said of the rest, and the kernel stays what it was, as the value had no weight."""
    context, _ = waves(80, noise=0.01)
    F = context.F.clone()
    F[0, 17] *= 1e6
    wrong = changed(context, F)
    rest = wrong.select(torch.tensor([pair for pair in range(80) if pair != 17]))
    without, beside = discover(model(), rest), discover(model(), wrong)
    assert beside.diagnostics
    assert not without.diagnostics
    difference = without.kernel.values[0] - beside.kernel.values[0]
    assert bool((difference.abs() < beside.std[0]).all())


@pytest.mark.parametrize("local", [True, False])
def test_where_a_local_law_fails_the_model_without_one_is_named(local) -> None:
    """`experiments/own_problems.py pressure` shows that it helps."""
    context = waves(20)[0]
    check = Check(context, context.F, context.F, 0.7, 0.7, 2.0, 0.4)
    found = _classical(check, local)
    assert found
    assert ("Try --model integral" in found.remedy) == local
