"""One contract for every registered map; what a map is known not to keep is a fact in contract.py, and tested too."""

from functools import cache

import pytest
import torch

from contract import EXAMPLES, FACTS, SYSTEMS, build, radial
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.metrics import relative_difference
from kernelmap.core.posterior import KernelPosterior
from kernelmap.core.systems import SystemSet
from kernelmap.io import load_model, save_model
from kernelmap.maps import MAPS, ProbabilisticMap

D = 16

TAKEN = [(name, kind) for name, facts in FACTS.items() for kind in EXAMPLES if kind in facts.takes]
REFUSED = [(name, kind) for name, facts in FACTS.items() for kind in EXAMPLES if kind not in facts.takes]
PROBABILISTIC = [(name, kind) for name, kind in TAKEN if issubclass(MAPS[name], ProbabilisticMap)]
EACH = pytest.mark.parametrize(("name", "kind"), TAKEN)
EACH_PROBABILISTIC = pytest.mark.parametrize(("name", "kind"), PROBABILISTIC)


def values(name: str, context: Context, of: Context | None = None) -> torch.Tensor:
    """The kernel of a map that was built for a context."""
    with torch.no_grad():
        return build(name, of or context)(context).values


@cache
def example(name: str, kind: str) -> tuple[Context, torch.Tensor]:
    """Pairs of a kind, and the kernels of the map that was built for them."""
    context = EXAMPLES[kind](D, 1)
    return context, values(name, context)


@cache
def posterior_of(name: str, kind: str) -> tuple[Context, KernelPosterior]:
    """Of one system with a little noise."""
    context = EXAMPLES[kind](D, 1)[0]
    noise = torch.randn(context.F.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    F = context.F + 0.01 * context.F.square().mean().sqrt() * noise * (context.F != 0)
    context = Context(context.U, F, context.y, context.x)
    model = build(name, context)
    assert isinstance(model, ProbabilisticMap)
    with torch.no_grad():
        return context, model.posterior(context)


def test_there_are_facts_about_every_map():
    assert set(FACTS) == set(MAPS.names)


@EACH
def test_a_kernel_for_every_system_of_a_batch(name, kind):
    context = EXAMPLES[kind](D, 1)
    with torch.no_grad():
        kernel = build(name, context)(context)
    assert kernel.values.shape == (SYSTEMS, context.x.size, context.y.size)
    assert kernel.apply(context.U).shape == context.F.shape
    assert torch.isfinite(kernel.values).all()


@pytest.mark.parametrize(("name", "kind"), REFUSED)
def test_what_a_map_cannot_take_is_refused_with_a_sentence(name, kind):
    context = EXAMPLES[kind](D, 1)
    with pytest.raises(InputError):
        values(name, context)


@EACH
def test_a_batch_is_a_loop(name, kind):
    context, together = example(name, kind)
    for system in range(SYSTEMS):
        assert relative_difference(together[system], values(name, context[system], of=context)) < 1e-6


@EACH
def test_the_order_of_pairs(name, kind):
    context, kernels = example(name, kind)
    shuffled = context.select(torch.randperm(D, generator=torch.Generator().manual_seed(1)))
    difference = relative_difference(values(name, shuffled, of=context), kernels)
    assert difference > 1e-3 if "order" in FACTS[name].breaks else difference < 1e-6


@EACH
@pytest.mark.parametrize("c", [1e-6, 1e6])
def test_the_scale_of_u_and_f(name, kind, c):
    context, kernels = example(name, kind)
    scaled = Context(c * context.U, c * context.F, context.y, context.x)
    difference = relative_difference(values(name, scaled, of=context), kernels)
    assert difference > 1e-3 if "scale" in FACTS[name].breaks else difference < 1e-6


@EACH
def test_another_number_of_pairs(name, kind):
    context, kernels = example(name, kind)
    fewer = context.select(torch.arange(D - 3))
    if "any_d" in FACTS[name].breaks:
        with pytest.raises(InputError, match=f"exactly d = {D} pairs, got {D - 3}"):
            values(name, fewer, of=context)
    else:
        few = values(name, fewer, of=context)
        assert torch.isfinite(few).all()
        assert relative_difference(few, kernels) > 1e-6


@EACH
def test_another_resolution(name, kind):
    coarse, fine = EXAMPLES[kind](D, 1), EXAMPLES[kind](D, 2)
    if "resolution" in FACTS[name].breaks:
        with pytest.raises(InputError, match="tied to the grid"):
            values(name, fine, of=coarse)
    else:
        assert values(name, fine, of=coarse).shape == (SYSTEMS, fine.x.size, fine.y.size)


@pytest.mark.parametrize("name", [n for n, kind in TAKEN if kind == "radial" and "resolution" not in FACTS[n].breaks])
def test_the_response_to_a_function_does_not_depend_on_the_grid(name):
    """True responses to these functions differ by 1 % between the two grids; without weights, by a factor of two."""
    responses = []
    for refine in (1, 2):
        both = radial(D + 4, refine)
        context, others = (both.select(part) for part in torch.arange(D + 4).split([D, 4]))
        model = build(name, radial(D, 1))
        with torch.no_grad():
            responses.append(model(context).apply(others.U))
    assert relative_difference(*responses) < 0.35


@EACH
def test_every_parameter_is_trained_by_the_loss(name, kind):
    kind_of_map = MAPS[name]
    if kind_of_map.Loss is None:
        context = EXAMPLES[kind](D, 1)
        systems = SystemSet(("a", "b", "c"), context.U.mT, context.F.mT, context.y, context.x)
        options = kind_of_map.Options(**FACTS[name].options)
        if "fit" in FACTS[name].breaks:
            with pytest.raises(InputError, match=f"a {name} "):
                kind_of_map.fit(systems, D, options)
        else:
            assert type(kind_of_map.fit(systems, D, options)) is kind_of_map
        return
    context = EXAMPLES[kind](kind_of_map.Loss.pairs(D), 1)
    model = build(name, context.select(torch.arange(D)))
    loss = kind_of_map.Loss(model, context.y, context.x)
    losses = loss(context.U, context.F, 1)
    assert torch.isfinite(losses).all()
    losses.sum().backward()
    assert [n for n, p in loss.named_parameters() if p.grad is None or not p.grad.abs().max() > 0] == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@EACH
def test_a_saved_model_comes_back(tmp_path, name, kind, dtype):
    context = EXAMPLES[kind](D, 1)
    model = build(name, context, dtype)
    save_model(tmp_path / "model", model, {"problem": kind})
    loaded, about = load_model(tmp_path / "model")
    assert type(loaded) is MAPS[name]
    assert (loaded.shape, loaded.options, about) == (model.shape, model.options, {"problem": kind})
    assert loaded.u_std.dtype == dtype
    with torch.no_grad():
        assert torch.equal(loaded(context).values, model(context).values)


@EACH_PROBABILISTIC
def test_the_map_gives_the_mean_of_its_posterior(name, kind):
    context, posterior = posterior_of(name, kind)
    assert relative_difference(values(name, context), posterior.mean) < 1e-12
    assert torch.equal(posterior.kernel.values, posterior.mean)
    assert posterior.std.shape == posterior.variance_reduction.shape == posterior.mean.shape
    assert (posterior.std >= 0).all()
    assert (posterior.std > 0).any()
    assert ((posterior.variance_reduction >= 0) & (posterior.variance_reduction <= 1)).all()
    assert posterior.informed_directions > 0
    # A stiffness matrix is not smooth: without physics put in, 24 pairs explain three quarters of its responses.
    smooth = (name, kind) != ("integral", "pressure to source")
    assert 0 <= float(posterior.relative_residual.mean()) < (0.5 if smooth else 0.6)


@EACH_PROBABILISTIC
def test_intervals_hold_what_they_say(name, kind):
    _, posterior = posterior_of(name, kind)
    for level in (0.5, 0.95):
        low, high = posterior.interval(level)
        held = (posterior.cdf(high) - posterior.cdf(low))[posterior.std > 0]
        torch.testing.assert_close(held, torch.full_like(held, level), rtol=1e-4, atol=0)
    with pytest.raises(InputError, match="between 0 and 1"):
        posterior.interval(95)


@EACH_PROBABILISTIC
def test_samples_have_the_posterior_moments(name, kind):
    context, posterior = posterior_of(name, kind)
    count = 200
    drawn = posterior.sample(count, torch.Generator().manual_seed(0))
    assert drawn.shape == (count, context.x.size, context.y.size)
    known = posterior.std > 1e-6 * posterior.std.max()
    ratio = drawn.std(dim=0)[known] / posterior.std[known]
    # An elastic medium's std comes from a few draws, and its kernel is not linear in them.
    assert 0.75 < float(ratio.median()) < 1.33
    away = ((drawn.mean(dim=0) - posterior.mean) / posterior.std)[known]
    assert float(away.abs().median()) < 0.5
    again = posterior.sample(3, torch.Generator().manual_seed(0))
    assert torch.equal(posterior.sample(3, torch.Generator().manual_seed(0)), again)


@EACH_PROBABILISTIC
def test_kernels_are_drawn_for_one_system(name, kind):
    context = EXAMPLES[kind](D, 1)
    model = build(name, context)
    assert isinstance(model, ProbabilisticMap)
    with torch.no_grad(), pytest.raises(InputError, match="one system"):
        model.posterior(context).sample(2)


@EACH_PROBABILISTIC
def test_predictions_and_their_density(name, kind):
    context, posterior = posterior_of(name, kind)
    with torch.no_grad():
        mean, std = posterior.predict(context.U)
    assert mean.shape == std.shape == context.F.shape
    free = (context.F != 0).any(dim=-1)
    # An operator conditioned as its own inverse explains the pairs half.
    assert relative_difference(mean, context.F) < 0.6
    assert (std[free] > 0).all()
    if free.all():
        here, far = (posterior.log_prob(context.U, F) for F in (mean, mean + 5 * std))
        assert here.shape == (D,)
        assert (here > far).all()
        assert relative_difference(posterior.respond(context.U), mean) < 1e-9


@EACH_PROBABILISTIC
def test_log_prob_is_a_density(name, kind):
    """Over one output point it integrates to one."""
    context, posterior = posterior_of(name, kind)
    if context.x.size > 1:
        return
    U = context.U[:, :1]
    with torch.no_grad():
        mean, std = posterior.predict(U)
        at = torch.linspace(-12, 12, 2001, dtype=torch.float64)
        F = mean + std * at
        density = posterior.log_prob(U.expand(-1, len(at)), F).exp()
    assert float(torch.trapezoid(density, F[0])) == pytest.approx(1, abs=1e-3)
