"""The posterior map: exact conditioning, and the symmetries that the paper's maps lack."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from examples import CONTEXTS, radial_context
from kernelmap import grids
from kernelmap.context import Context
from kernelmap.errors import InputError
from kernelmap.grids import Grid, from_points, radii
from kernelmap.kernel import Kernel
from kernelmap.maps import ContextShape, PosteriorMap, PosteriorOptions
from kernelmap.maps.mixture import THETA, Jumps
from kernelmap.maps.prior import USED
from kernelmap.maps.regression import regress
from kernelmap.metrics import relative_difference
from kernelmap.training.predictive import PredictiveObjective

SMALL = PosteriorOptions(wide=16, near=8, free=6, components=3)


def waves(N: int, d: int, noise: float = 0.0, uniform: bool = True) -> tuple[Context, torch.Tensor]:
    """Smooth tokens and a smooth kernel on (0, 11]; the same functions on every grid."""
    if uniform:
        grid = grids.radii(11 / N, N)
    else:
        grid = grids.from_points(11 * torch.linspace(0, 1, N + 1)[1:].double() ** 1.3)
    generator = torch.Generator().manual_seed(7)
    r = grid.points[:, 0]
    amplitudes = torch.randn(20, 200, generator=generator, dtype=torch.float64)[:, :d]
    U = torch.stack([torch.cos(k * r / 2) - 1 for k in range(1, 21)], dim=1) @ amplitudes
    K = (torch.exp(-r) * torch.sin(2 * r))[None]
    F = (K * grid.weights) @ U
    extra = torch.randn(1, 200, generator=generator, dtype=torch.float64)[:, :d]
    return Context(U, F + noise * F.square().mean().sqrt() * extra, grid, grids.point()), K


def built(context: Context, options: PosteriorOptions = SMALL) -> PosteriorMap:
    torch.manual_seed(0)
    return PosteriorMap(ContextShape.of(context), options).double()


def test_regression_is_the_dense_gaussian_formula():
    torch.manual_seed(0)
    A, n, f = torch.randn(5, 9).double(), torch.rand(9).double() + 0.1, torch.randn(9).double()
    omega, X = torch.rand(2, 5).double(), torch.randn(5, 4).double()
    found = regress(A, n, f, omega)
    for q in range(2):
        C = torch.diag(omega[q] ** 2)
        covariance = A.T @ C @ A + torch.diag(n)
        gain = C @ A @ torch.linalg.inv(covariance)
        torch.testing.assert_close(found.mean[q], gain @ f)
        posterior = C - gain @ A.T @ C
        torch.testing.assert_close(found.mean_of(X)[q], X.T @ gain @ f)
        torch.testing.assert_close(found.variance_of(X)[q], (X.T @ posterior @ X).diagonal())
        torch.testing.assert_close(found.misfit[q], f @ torch.linalg.solve(covariance, f))
        torch.testing.assert_close(found.log_det[q], torch.logdet(covariance))


def sizes(U: Tensor, y: Grid) -> Tensor:
    """Jumps in the cells that end at the points of a grid but its last."""
    jumps = Jumps.of(U, y)
    return torch.cat([jumps.first, jumps.rest]).sqrt() * jumps.h4[:, None] ** 0.25


@pytest.mark.parametrize("points", [torch.linspace(0, 1, 101), torch.linspace(0, 1, 101) ** 1.3])
@pytest.mark.parametrize("place", [0.001, 0.015, 0.505, 0.962])
def test_jumps_are_found_and_slopes_are_not(points: Tensor, place: float):
    y = from_points(points.double())
    smooth = torch.sin(6 * y.points)
    step = 0.7 * (y.points > place).double()
    found = sizes(smooth + step, y)
    assert sizes(smooth, y).max() < 0.01
    assert int(found.argmax()) == int((y.points > place).double().argmax())  # the cell ends at the first point beyond
    assert float(found.max()) == pytest.approx(0.7, abs=0.15)


def test_radii_have_a_cell_from_zero_where_tokens_vanish():
    u = torch.full((50, 1), 0.7).double()
    found = sizes(u, radii(0.02, 50))
    assert float(found[0]) == pytest.approx(0.7)
    assert not found[1:].any()
    u[0] = 0
    found = sizes(u, radii(0.02, 50))
    assert float(found[1]) == pytest.approx(0.7)
    assert not found[0]
    assert not found[2:].any()
    assert not sizes(u[1:], from_points(torch.linspace(0, 1, 49))).any()  # that cell is not part of the integral


def test_the_error_of_quadrature_at_jumps_has_the_expected_size():
    """Over all places of a jump in its cell: that of K h jump θ with θ uniform between -1/2 and 1/2."""
    generator = torch.Generator().manual_seed(0)
    grid = from_points(torch.linspace(0, 1, 41) ** 1.2)
    places = 0.1 + 0.8 * torch.rand(2000, generator=generator, dtype=torch.float64)
    kernel = torch.exp(-grid.points[:, 0])
    U = (grid.points < places).double()
    errors = (kernel * grid.weights) @ U - (1 - torch.exp(-places))
    expected = (THETA * Jumps.of(U, grid).sum(kernel[None] ** 2)[0]).sqrt()
    assert float((errors / expected).square().mean().sqrt()) == pytest.approx(1, abs=0.05)


def test_order_and_scale_do_not_matter():
    context, _ = waves(80, 40, noise=0.01)
    model = built(context)
    with torch.no_grad():
        kernel = model(context).values
        permuted = model(context.select(torch.randperm(40, generator=torch.Generator().manual_seed(1)))).values
        assert relative_difference(permuted, kernel) < 1e-9
        for c in (1e-6, 1e-2, 1e6):
            both = Context(c * context.U, c * context.F, context.y, context.x)
            assert relative_difference(model(both).values, kernel) < 1e-9
            alone = Context(context.U, c * context.F, context.y, context.x)
            assert relative_difference(model(alone).values, c * kernel) < 1e-9


@pytest.mark.parametrize("d", [2, 5, 40, 120])
def test_any_number_of_pairs(d):
    context, _ = waves(80, d)
    with torch.no_grad():
        posterior = built(context).posterior(context)
    assert posterior.kernel.shape == (1, 80)
    assert torch.isfinite(posterior.kernel).all()
    assert (posterior.variance > 0).all()


def test_more_pairs_know_more_and_noise_is_found():
    few, _ = waves(80, 10)
    many, _ = waves(80, 120)
    noisy, _ = waves(80, 120, noise=0.1)
    model = built(many)
    with torch.no_grad():
        found = [model.posterior(context) for context in (few, many, noisy)]
    assert found[1].variance.mean() < found[0].variance.mean()
    assert float(found[1].noise) < 0.01
    assert float(found[2].noise) == pytest.approx(0.1, rel=0.25)


def test_the_same_kernel_on_another_grid():
    fine, _ = waves(160, 60)
    model = built(fine)
    r = torch.linspace(0.5, 10.5, 40)
    with torch.no_grad():
        reference = model(fine)(r)
        for other in (waves(80, 60)[0], waves(160, 60, uniform=False)[0]):
            assert abs(model(other)(r) - reference).max() < 0.1 * abs(reference).max()


def test_discovery_makes_two_economies():
    """Of one component's errors the mean is its own, and of few cosines all are used; otherwise the two differ."""
    context, _ = waves(60, 30)
    for components, wide, same in ((1, 16, True), (3, 16, False), (1, USED[0] + 8, False)):
        model = built(context, PosteriorOptions(wide=wide, near=8, free=6, components=components))
        with torch.no_grad():
            quick = model.posterior(context)
            thorough = model.thorough_posterior(context, torch.tensor(THETA, dtype=torch.float64))
        assert quick.phi.shape[1] == min(wide, USED[0]) + 8 + 6
        assert thorough.phi.shape[1] == wide + 8 + 6
        difference = relative_difference(quick.kernel, thorough.kernel)
        assert difference < 1e-12 if same else 1e-9 < difference < 0.1


def test_what_is_found_without_gradients_can_be_used_with_them():
    context, _ = waves(60, 30)
    model = built(context)
    with torch.inference_mode():
        model.posterior(context)
    with torch.no_grad():
        posterior = model.posterior(context)
        std = model.standard_deviation(posterior)
    U = context.U.clone().requires_grad_()
    scale = torch.ones((), dtype=torch.float64, requires_grad=True)
    mean, variance = posterior.predict(U)
    (mean.sum() + variance.sum() + (scale * posterior.kernel).sum() + (scale * std).sum()).backward()
    assert U.grad is not None
    assert U.grad.abs().max() > 0
    assert scale.grad is not None


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e25])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_single_precision_is_enough_for_the_band(scale: float, noise: float):
    context, _ = waves(120, 160, noise)
    context = Context(context.U, scale * context.F, context.y, context.x)
    with torch.no_grad():
        posterior = built(context).posterior(context)
        exact = replace(posterior, rows=posterior.phi.mT).variance
    assert posterior.rows.dtype == torch.float32
    torch.testing.assert_close(posterior.variance, exact, rtol=1e-3, atol=0)


def test_noise_on_one_system_of_a_batch_leaves_the_others_alone():
    each = [waves(120, 160, noise)[0] for noise in (0.0, 0.02, 0.1)]
    exact = each[0]
    model = built(exact)
    with torch.no_grad():
        together = model.posterior(Context(exact.U[None], torch.stack([c.F for c in each]), exact.y, exact.x))
        for i, context in enumerate(each):
            alone = model.posterior(context)
            assert relative_difference(together.kernel[i], alone.kernel) < 1e-6
            assert relative_difference(together.variance[i], alone.variance) < 1e-6
            torch.testing.assert_close(together.noise[i], alone.noise, rtol=1e-5, atol=0)


def test_a_batch_is_a_loop():
    context, _ = waves(60, 30, noise=0.02)
    F = torch.stack([context.F, 2 * context.F.flip(-1)])
    batch = Context(context.U[None], F, context.y, context.x)
    model = built(context)
    with torch.no_grad():
        together = model.posterior(batch)
        for i in range(2):
            alone = model.posterior(Context(context.U, F[i], context.y, context.x))
            assert relative_difference(together.kernel[i], alone.kernel) < 1e-4
            assert relative_difference(together.variance[i], alone.variance) < 1e-3
            new = alone.predict(context.U[:, :4])[0]
            assert relative_difference(together.predict(batch.U[..., :4])[0][i], new) < 1e-4


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("batched", [True, False])
def test_several_inputs_may_share_their_responses(noise: float, batched: bool):
    context, _ = waves(60, 80, noise)
    model, U = built(context), torch.stack([context.U, 2 * context.U, context.U.flip(-1)])
    with torch.no_grad():
        F = context.F[None] if batched else context.F
        together = model.posterior(Context(U, F, context.y, context.x))
        for i in range(3):
            alone = model.posterior(Context(U[i], context.F, context.y, context.x))
            assert relative_difference(together.kernel[i], alone.kernel) < 1e-5


def test_several_outputs_at_once():
    grid = grids.radii(0.5, 22)
    generator = torch.Generator().manual_seed(0)
    U, F = (torch.randn(22, 15, generator=generator, dtype=torch.float64) for _ in range(2))
    context = Context(U, F, grid, grid)
    model = built(context)
    with torch.no_grad():
        kernel = model(context).values
        row = PosteriorMap.posterior(model, Context(U, F[3:4], grid, grids.point())).kernel
        batch = model.posterior(Context(torch.stack([U, 2 * U]), torch.stack([F, F]), grid, grid))
        std = model.standard_deviation(batch)
    assert kernel.shape == (22, 22)
    assert relative_difference(kernel[3:4], row) < 1e-4
    assert batch.kernel.shape == std.shape == (2, 22, 22)
    assert relative_difference(2 * batch.kernel[1], kernel) < 1e-4
    assert relative_difference(2 * std[1], std[0]) < 1e-4


def test_samples_have_the_posterior_moments():
    context, _ = waves(40, 8, noise=0.05)
    with torch.no_grad():
        posterior = built(context).posterior(context)
        samples = posterior.sample(20_000, torch.Generator().manual_seed(0))
    spread = posterior.variance[0].sqrt()
    assert ((samples.mean(dim=0) - posterior.kernel[0]).abs() < 0.05 * spread).all()
    torch.testing.assert_close(samples.std(dim=0), spread, rtol=0.05, atol=0)


def test_predictions_carry_their_error():
    context, K = waves(80, 120, noise=0.05)
    rest = context.select(torch.arange(60, 120))
    with torch.no_grad():
        mean, variance = built(context).posterior(context.select(torch.arange(60))).predict(rest.U)
    surprise = (mean - rest.F) / variance.sqrt()
    assert 0.6 < float(surprise.square().mean().sqrt()) < 1.7
    exact = (K * context.y.weights) @ rest.U
    assert relative_difference(mean, exact) < 0.05


def test_it_is_differentiable():
    """The training loss against finite differences, in a random direction of all parameters."""
    context, _ = waves(40, 170)
    F = torch.stack([context.F, context.F.flip(-1)])[None]
    model = built(context)
    objective = PredictiveObjective(model, context.y, context.x).eval()
    parameters = list(objective.parameters())
    direction = [
        torch.randn(p.shape, generator=torch.Generator().manual_seed(i)).double() for i, p in enumerate(parameters)
    ]

    def loss() -> torch.Tensor:
        return objective(context.U[None, None], F, 1).mean()

    gradients = torch.autograd.grad(loss(), parameters)
    slope = sum(float((g * v).sum()) for g, v in zip(gradients, direction, strict=True))
    values = []
    with torch.no_grad():
        for step in (1e-5, -1e-5):
            for p, v in zip(parameters, direction, strict=True):
                p.add_(step * v)
            with torch.enable_grad():
                values.append(float(loss().detach()))
            for p, v in zip(parameters, direction, strict=True):
                p.sub_(step * v)
    assert (values[0] - values[1]) / 2e-5 == pytest.approx(slope, rel=1e-4)


LARGE = """
import resource, torch
from kernelmap import grids
from kernelmap.context import Context
from kernelmap.maps import ContextShape, PosteriorMap, PosteriorOptions
torch.set_num_threads(1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
grid = grids.radii(11 / 20_000, 20_000)
r = grid.points
U = torch.cos(r * torch.linspace(0.2, 9, 300).double()) - 1
context = Context(U, torch.exp(-r.mT) * grid.weights @ U, grid, grids.point())
model = PosteriorMap(ContextShape.of(context), PosteriorOptions()).double()
with torch.no_grad():
    posterior = model.posterior(context)
    model.standard_deviation(posterior)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6)
"""


def test_a_long_grid_needs_no_square_array():
    """N = 20 000, d = 300: one N x N array would take 3.2 GB."""
    run = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 2.0


def test_what_it_cannot_take():
    context = radial_context(d=1, batch=())
    with pytest.raises(InputError, match="cannot be told from 1 pair"):
        built(radial_context(batch=()))(context)
    for kind in ("square", "vector"):
        with pytest.raises(InputError, match="functions of one coordinate"):
            built(CONTEXTS[kind](batch=()))
    good = radial_context(d=5, batch=())
    backwards = Grid(good.y.points.flip(0), good.y.weights)
    with pytest.raises(InputError, match="increasing order"):
        built(good)(Context(good.U, good.F, backwards, good.x))


def test_zero_responses_and_exact_means_are_no_accident():
    context, K = waves(60, 30)
    model = built(context)
    outputs = Context(context.U, torch.cat([context.F, 0 * context.F]), context.y, grids.from_points([0.0, 1.0]))
    with torch.no_grad():
        kernel = model.posterior(outputs).kernel
        exact = model.conditioned(Kernel(K, context.y, context.x), context)
    assert float(kernel[1].abs().max()) < 1e-6 * float(kernel[0].abs().max())
    assert relative_difference(exact.values, K) < 1e-6
