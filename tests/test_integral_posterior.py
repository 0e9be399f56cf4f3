"""The integral posterior against dense Gaussian conditioning, on any grid, and on systems from its own prior."""

import pytest
import torch
from torch import Tensor

from examples import CONTEXTS
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.metrics import relative_difference
from kernelmap.maps.nao.set_nao.options import SpectralOptions
from kernelmap.posterior import IntegralPosterior, IntegralPosteriorMap
from kernelmap.posterior.integral import Covariance, Gram, MatrixNormal
from kernelmap.posterior.integral.eigen import eigh
from kernelmap.posterior.integral.loss import PredictiveLoss

ANY_CONTEXT = pytest.mark.parametrize("kind", list(CONTEXTS))


def build(context: Context, *, spread: float = 0.1, **options) -> IntegralPosteriorMap:
    """A map whose functions are not where they start."""
    torch.manual_seed(0)
    model = IntegralPosteriorMap(ContextShape.of(context), SpectralOptions(**{"waves": 2, **options})).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(spread * torch.randn_like(parameter))
    return model


class Dense:
    """The joint Gaussian of vec(K - s m), row by row, and of the measured values, with every covariance built.

    It takes from the map the prior's mean, roots of covariances and constants, and conditions by itself.
    """

    def __init__(self, posterior: IntegralPosterior) -> None:
        tokens, normal = posterior.tokens, posterior.normal
        C_x, C_y = normal.x.X @ normal.x.X.mT, posterior.root @ posterior.root.mT
        (M, d), N = tokens.G.shape, len(C_y)
        prior = torch.kron(C_x, C_y) * normal.a2
        observe = torch.kron(torch.eye(M, dtype=prior.dtype), (tokens.h[:, None] * tokens.U).mT.contiguous())
        self.noise = normal.a2 * normal.s2
        data = observe @ prior @ observe.mT + self.noise * torch.eye(M * d, dtype=prior.dtype)
        gain = prior @ observe.mT @ torch.linalg.inv(data)
        left, right = tokens.mean
        self.mean = (left @ right + (gain @ tokens.G.flatten()).unflatten(0, (M, N))) * tokens.unit
        self.covariance = (prior - gain @ observe @ prior) * tokens.unit.square()
        self.evidence = torch.distributions.MultivariateNormal(torch.zeros(M * d).to(prior), data).log_prob(
            tokens.G.flatten()
        )
        self.variance_reduction = 1 - (self.covariance / tokens.unit.square() / prior).diagonal().reshape(M, N)
        self.f_scale, self.M = tokens.f_scale, M

    @property
    def std(self) -> Tensor:
        return self.covariance.diagonal().clamp(min=0).sqrt().reshape(self.mean.shape)

    def predict(self, wu: Tensor) -> tuple[Tensor, Tensor]:
        observe = torch.kron(torch.eye(self.M, dtype=wu.dtype), wu.mT.contiguous())
        variance = (observe @ self.covariance @ observe.mT).diagonal() + self.noise * self.f_scale**2
        return self.mean @ wu, variance.sqrt().reshape(self.M, -1)


@ANY_CONTEXT
def test_equals_dense_gaussian_conditioning(kind):
    context = CONTEXTS[kind](batch=(), d=5)
    posterior = build(context).posterior(context)
    dense = Dense(posterior)
    U = torch.randn(context.y.size, 3, dtype=torch.float64)
    mean, std = posterior.predict(U)
    dense_mean, dense_std = dense.predict(context.y.value_weights[:, None] * U)
    for ours, theirs in (
        (posterior.mean, dense.mean),
        (posterior.std, dense.std),
        (mean, dense_mean),
        (std, dense_std),
        (posterior.normal.log_evidence, dense.evidence),
        (posterior.variance_reduction, dense.variance_reduction),
    ):
        assert relative_difference(ours, theirs) < 1e-10


@torch.no_grad()
def test_noise_leaves_fewer_directions_to_the_data():
    context = CONTEXTS["square"](batch=(), n=6, d=5)
    model = build(context)
    model.prior.log_noise.fill_(-9.0)
    found = [model.posterior(context, noise=noise).informed_directions for noise in (0.0, 0.1, 100.0)]
    assert found[0] == 5
    assert found[0] >= found[1] > found[2] == 0


def test_likeliest_amplitude_is_the_misfit_per_value():
    context = CONTEXTS["square"](batch=(), d=5)
    normal = build(context).posterior(context).normal
    best = normal.misfit / normal.G.numel()
    evidence = [
        MatrixNormal(normal.x, normal.pairs, normal.G, normal.s2, best[..., None, None] * factor).log_evidence
        for factor in (0.98, 1.0, 1.02)
    ]
    assert evidence[1] > max(evidence[0], evidence[2])


@pytest.mark.parametrize("d", [5, 30])
def test_gradients_are_those_of_dense_conditioning(d):
    """Also where eigenvalues meet: 30 pairs have S of rank 9 at most, and modes (1, 2) and (2, 1) are alike."""
    context = CONTEXTS["square"](batch=(), d=d)
    U = torch.randn(context.y.size, 2, dtype=torch.float64)
    gradients = []
    for dense in (False, True):
        model = build(context, spread=0.0 if d == 5 else 0.1)
        posterior = model.posterior(context, noise=0.1)
        answer = Dense(posterior).predict(context.y.value_weights[:, None] * U) if dense else posterior.predict(U)
        (answer[0].sin().sum() + answer[1].log().sum()).backward()
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    for name, gradient in gradients[0].items():
        assert torch.dist(gradient, gradients[1][name]) <= 1e-7 * gradients[1][name].norm(), name


def test_draws_have_the_posterior_mean_and_covariance():
    context = CONTEXTS["radial"](batch=(), d=4)
    with torch.no_grad():
        posterior = build(context).posterior(context)
        draws = posterior.sample(4000, torch.Generator().manual_seed(0)).flatten(1)
        dense = Dense(posterior)
    assert draws.shape == (4000, context.y.size)
    assert (draws.mean(dim=0) - dense.mean[0]).abs().max() < 5 * dense.std.max() / 4000**0.5
    assert relative_difference(torch.cov(draws.mT), dense.covariance) < 0.1


@ANY_CONTEXT
def test_order_and_units_do_not_matter(kind):
    context = CONTEXTS[kind]()
    model = build(context)
    with torch.no_grad():
        found = model.posterior(context)
        permuted = model.posterior(context.select(torch.randperm(context.d)))
        assert relative_difference(permuted.mean, found.mean) < 1e-9
        assert relative_difference(permuted.std, found.std) < 1e-9
        for factor in (1e-6, 1e6):
            alone = model.posterior(Context(context.U, factor * context.F, context.y, context.x))
            together = model.posterior(Context(factor * context.U, factor * context.F, context.y, context.x))
            for other, scale in ((alone, factor), (together, 1)):
                assert relative_difference(other.mean, scale * found.mean) < 1e-9
                assert relative_difference(other.std, scale * found.std) < 1e-9
                assert relative_difference(other.relative_residual, found.relative_residual) < 1e-9


def test_kernel_and_band_do_not_change_as_the_grid_is_refined():
    def functions(n: int) -> Context:
        grid = grids.rectangle(n)
        t = grid.points
        k = torch.arange(1, 9, dtype=torch.float64)
        U = (
            torch.sin(torch.pi * t[:, :1])
            * torch.sin(torch.pi * t[:, 1:])
            * torch.sin(k * t[:, :1] + t[:, 1:] * k.sqrt())
        )
        return Context(U, torch.sin(torch.pi * t[:, :1]) * torch.sin(torch.pi * t[:, 1:]) * U.cos(), grid, grid)

    model = build(functions(21), basis="sines", waves=6)
    with torch.no_grad():
        coarse, fine = (model.posterior(functions(n), noise=0.0) for n in (21, 41))
    for on_coarse, on_fine in ((coarse.mean, fine.mean), (coarse.std, fine.std)):
        common = on_fine.reshape(41, 41, 41, 41)[::2, ::2, ::2, ::2].reshape(441, 441)
        assert relative_difference(on_coarse, common) < 0.02


def test_noise_is_found_and_widens_the_band():
    context = CONTEXTS["square"](batch=(), n=6, d=30)
    model = build(context)
    with torch.no_grad():
        model.prior.log_noise.fill_(-7.0)
        prior = model.posterior(context)
        K = prior.tokens.mean.left @ prior.tokens.mean.right + 0.3 * (
            prior.normal.x.X @ torch.randn(prior.normal.x.X.shape[1], prior.root.shape[1]).double() @ prior.root.mT
        )
        F = (K * context.y.value_weights) @ context.U
        found = {}
        for level in (0.0, 0.1):
            noisy = F + level * F.square().mean().sqrt() * torch.randn_like(F)
            found[level] = model.posterior(Context(context.U, noisy, context.y, context.x))
    assert found[0.0].relative_residual < 0.01
    assert 0.05 < found[0.1].relative_residual < 0.2
    assert found[0.1].std.mean() > 2 * found[0.0].std.mean()


def test_covers_kernels_of_its_own_prior():
    """95 % intervals of kernels and of measured responses hold 95 % of them."""
    context = CONTEXTS["square"](batch=(), n=5, d=12)
    model = build(context)
    generator = torch.Generator().manual_seed(0)
    hits, predicted = [], []
    with torch.no_grad():
        model.prior.log_noise.fill_(-3.0)
        template = model.posterior(context, noise=0.0)
        X, root, w = template.normal.x.X, template.root, context.y.value_weights[:, None]
        left, right = model.prior.mean.factors(context.x, context.y)
        for _ in range(200):
            U = torch.randn(25, 15, generator=generator, dtype=torch.float64)
            z = torch.randn(X.shape[1], root.shape[1], generator=generator, dtype=torch.float64)
            K = X @ z @ root.mT
            # The mean is so large that the context's amplitude of it is known.
            F = ((1e3 * left @ right + K) * w.mT) @ U
            size = F[:, :12].square().mean().sqrt()
            F = F + 0.05 * size * torch.randn(F.shape, generator=generator, dtype=torch.float64)
            found = model.posterior(Context(U[:, :12], F[:, :12], context.y, context.x), noise=0.0)
            mean, std = found.predict(U[:, 12:])
            predicted.append(((F[:, 12:] - mean).abs() <= 1.96 * std).double().mean())
            low, high = found.interval(0.95)
            hits.append(((low <= 1e3 * left @ right + K) & (1e3 * left @ right + K <= high)).double().mean())
    assert torch.stack(predicted).mean() > 0.93
    assert torch.stack(hits).mean() > 0.93


@torch.no_grad()
def test_the_loss_is_the_negative_log_density_in_units_of_f():
    """Up to a constant; misses count up to 30 standard deviations."""
    context = CONTEXTS["square"](batch=(), d=8)
    model = build(context)
    loss, posterior = PredictiveLoss(model, context.y, context.x), model.posterior(context, noise=0.0)
    U, z = (torch.randn(context.y.size, 4, dtype=torch.float64) for _ in range(2))
    mean, std = posterior.predict(U)
    sizes = (std / posterior.tokens.f_scale).log()
    assert float(loss.error(context, U, mean + z * std)) == pytest.approx(float((z.square() / 2 + sizes).mean()))
    for miss in (30, 1000):
        assert float(loss.error(context, U, mean + miss * std)) == pytest.approx(float(450 + sizes.mean()))


@torch.no_grad()
def test_constrained_values_teach_nothing():
    """Where f is zero in all pairs it is predicted exactly and, without noise, with a density that has no bound."""
    context = CONTEXTS["square"](batch=(), d=8)
    model = build(context, basis="sines")
    inside = model.prior.mean.x.inside(context.x).bool()
    context = Context(context.U, context.F * inside[:, None], context.y, context.x)
    loss, posterior = PredictiveLoss(model, context.y, context.x), model.posterior(context, noise=0.0)
    U = torch.randn(context.y.size, 4, dtype=torch.float64)
    mean, std = posterior.predict(U)
    assert mean[~inside].abs().max() < 1e-9 * mean.abs().max()
    sizes = (std / posterior.tokens.f_scale).log()
    found = float(loss.error(context, U, (mean + std) * inside[:, None]))
    assert found == pytest.approx(float(0.5 + sizes[inside].mean()))


def test_eigh_keeps_gradients_finite_where_eigenvalues_meet():
    A = torch.randn(3, 6, dtype=torch.float64).mT.requires_grad_()
    values, vectors = eigh(A @ A.mT)
    torch.testing.assert_close(vectors @ torch.diag(values) @ vectors.mT, A @ A.mT)
    (vectors @ torch.diag(1 / (values + 0.1)) @ vectors.mT).sin().sum().backward()
    assert A.grad is not None
    ours = A.grad.clone()
    A.grad = None
    torch.linalg.inv(A @ A.mT + 0.1 * torch.eye(6, dtype=torch.float64)).sin().sum().backward()
    torch.testing.assert_close(ours, A.grad)


def test_the_algebra_takes_covariances_from_anywhere():
    """Dense covariances, factorised: the matrix-normal posterior of any C_x and C_y."""
    t, z = torch.linspace(0, 1, 7, dtype=torch.float64), torch.linspace(0, 1, 5, dtype=torch.float64)
    C_x, C_y = (torch.exp(-((s[:, None] - s) ** 2) * 5) for s in (t, z))
    roots = [torch.linalg.cholesky(C + 1e-10 * torch.eye(len(C), dtype=torch.float64)) for C in (C_x, C_y)]
    U, G = (torch.randn(n, 4, dtype=torch.float64) for n in (5, 7))
    s2, a2 = (torch.full((1, 1), value, dtype=torch.float64) for value in (0.01, 2.0))
    normal = MatrixNormal(Covariance.of(roots[0]), Gram.of(roots[1].mT @ U), G, s2, a2)
    prior = torch.kron(C_x, C_y)
    observe = torch.kron(torch.eye(7, dtype=torch.float64), U.mT.contiguous())
    gain = (
        prior @ observe.mT @ torch.linalg.inv(observe @ prior @ observe.mT + 0.01 * torch.eye(28, dtype=torch.float64))
    )
    torch.testing.assert_close(normal.mean(roots[1]).flatten(), gain @ G.flatten(), rtol=1e-7, atol=1e-7)
    variance = 2 * (prior - gain @ observe @ prior).diagonal()
    torch.testing.assert_close(normal.variance(roots[1]).flatten(), variance, rtol=1e-6, atol=1e-7)
