"""The local posterior map against dense Bayesian regression, exact recovery, symmetries, and its own limits."""

import pytest
import torch

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.mesh.lattice import Lattice, step_classes, steps
from kernelmap.core.metrics import relative_difference
from kernelmap.core.systems import SystemSet
from kernelmap.io.models import load_model
from kernelmap.posterior.stencil.local import LocalPosteriorMap
from kernelmap.posterior.stencil.loss import LocalLoss
from kernelmap.posterior.stencil.prior import LocalOptions, LocalPrior
from kernelmap.posterior.stencil.solution import SolutionPosteriorMap
from kernelmap.problems.darcy import darcy, interior
from kernelmap.training.loop import train
from kernelmap.training.recipe import Recipe

N = 9
INSIDE = torch.from_numpy(interior(N))


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELMAP_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def build(context: Context, kind: type[LocalPosteriorMap] = LocalPosteriorMap, reach: int = 2) -> LocalPosteriorMap:
    model = kind(ContextShape.of(context), LocalOptions(reach)).double()
    with torch.no_grad():
        model.prior.envelope[:] = torch.tensor([-3.0, 0.0, -7.0, -8.0, -9.0, -10.0])[: len(model.prior.envelope)]
        model.prior.strength[1:] = -12.0
        model.prior.nugget.fill_(-11.0)
    return model


def system(systems: SystemSet, d: int, index: int = 0) -> Context:
    return systems.batch(torch.arange(d)[None], torch.tensor([index]))


def single(systems: SystemSet, d: int, index: int = 0) -> Context:
    context = system(systems, d, index)
    return Context(context.U[0, 0], context.F[0, 0], context.y, context.x)


def truth(systems: SystemSet, index: int = 0) -> torch.Tensor:
    assert systems.kernels is not None
    return systems.kernels[index]


def test_steps_and_their_classes():
    assert step_classes(1).tolist() == [2, 1, 2, 1, 0, 1, 2, 1, 2]
    step, kinds = steps(3), step_classes(3)
    for a, kind_a in zip(step.tolist(), kinds.tolist(), strict=True):
        for b, kind_b in zip(step.tolist(), kinds.tolist(), strict=True):
            assert (kind_a == kind_b) == (sorted(map(abs, a)) == sorted(map(abs, b)))
    assert set(kinds.tolist()) == set(range(10))


def test_bonds_and_rows_are_one_operator():
    """Σ_o c_o (u(x) - u(x+o)) + c_0 u(x) is the row that `rows_of` writes, at the mesh's edge too."""
    generator = torch.Generator().manual_seed(0)
    y = grids.rectangle(5)
    chosen = torch.tensor([0, 3, 12, 24])
    lattice = Lattice.of(y, grids.Grid(y.points[chosen], y.weights[chosen]))
    assert torch.equal(lattice.at, chosen)
    u = torch.randn(2, 25, 3, generator=generator, dtype=torch.float64)
    c = torch.randn(2, 4, 25, generator=generator, dtype=torch.float64)
    _, exists = lattice.neighbours(2)
    applied = torch.einsum("bmr,bmrd->bmd", c, lattice.bonds(u, 2))
    torch.testing.assert_close(lattice.rows_of(c * exists, 2) @ u, applied)
    bonds = lattice.bonds(u, 1)
    torch.testing.assert_close(bonds[:, 2, 5], u[:, 12] - u[:, 13])
    torch.testing.assert_close(bonds[:, 2, 4], u[:, 12])
    assert not bonds[:, 0, :3].any()


def test_a_mesh_that_is_not_regular_is_refused():
    y = grids.rectangle(4)
    bent = y.points.clone()
    bent[:, 0] = bent[:, 0].square()
    for points in (bent, y.points.flip(0), y.points[:-1]):
        grid = grids.Grid(points, y.weights[: len(points)])
        with pytest.raises(InputError, match="regular mesh"):
            Lattice.of(grid, grid)
    between = grids.Grid(y.points[:2] + 0.1, y.weights[:2])
    with pytest.raises(InputError, match="regular mesh"):
        Lattice.of(y, between)
    with pytest.raises(InputError, match="one component"):
        Lattice.of(y.with_components(2), y)


def test_conditioning_is_dense_gaussian_regression():
    """A row's posterior mean and variance of K, from the prior covariance of K written out as a matrix."""
    data = darcy("p-to-g", N)
    context = single(data.test, 7)
    model = build(context)
    posterior = model.posterior(context, noise=0.02)
    prior, s = model.prior, posterior.scale.item()
    row, node = 4 * N + 3, 4 * N + 3
    place, exists = Lattice.of(context.y, context.x).neighbours(2)
    ends = torch.zeros(25, N * N, dtype=torch.float64)
    for o in range(25):
        if o == 12:
            ends[o, node] += 1
        elif exists[row, o]:
            ends[o, node] += 1
            ends[o, place[row, o]] -= 1
    m, a, tau = prior.mean() @ ends, prior.weights()[:-1], prior.weights()[-1]
    C = s**2 * (ends.mT @ torch.diag(a.square()) @ ends + tau**2 * torch.outer(m, m))
    noise = (prior.nugget_variance().item() + 0.02**2) * context.F.square().mean()
    S = context.U.mT @ C @ context.U + noise * torch.eye(7, dtype=torch.float64)
    gain = torch.linalg.solve(S, context.U.mT @ C).mT
    mean = s * m + gain @ (context.F[row] - s * m @ context.U)
    variance = (C - gain @ context.U.mT @ C).diagonal()
    w = context.y.weights[0]
    torch.testing.assert_close(posterior.mean[row] * w, mean, rtol=1e-6, atol=1e-6 * mean.abs().max().item())
    torch.testing.assert_close(posterior.variance[row] * w**2, variance, rtol=1e-5, atol=1e-7 * variance.max().item())
    u = data.heldout.u[0, :3].mT
    predicted, spread = posterior.predict(u)
    torch.testing.assert_close(predicted[row], mean @ u, rtol=1e-6, atol=1e-6)
    exact = (u * ((C - gain @ context.U.mT @ C) @ u)).sum(dim=0) + noise
    torch.testing.assert_close(spread[row].square(), exact, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("faces", ["arithmetic", "harmonic"])
def test_the_stiffness_is_found(faces):
    data = darcy("p-to-g", N, faces=faces)
    context = single(data.test, 12)
    model = build(context)
    posterior = model.posterior(context)
    assert posterior.relative_residual == 0
    kernel, exact = (values[INSIDE][:, INSIDE] for values in (posterior.mean, truth(data.test)))
    assert relative_difference(kernel, exact) < 1e-3
    std = posterior.std[INSIDE][:, INSIDE]
    assert ((kernel - exact).abs() <= 1.96 * std + 1e-9 * exact.max()).double().mean() > 0.9


@pytest.mark.parametrize("level", [0.01, 0.1])
def test_noise_is_found_and_covered(level):
    data = darcy("p-to-g", N)
    noisy = data.test.with_noise(level, 0)
    context = single(noisy, 40)
    model = build(context)
    posterior = model.posterior(context)
    assert 0.5 * level <= float(posterior.relative_residual) <= 2 * level
    exact = truth(data.test)[INSIDE][:, INSIDE]
    std = posterior.std[INSIDE][:, INSIDE]
    inside = ((posterior.mean[INSIDE][:, INSIDE] - exact).abs() <= 1.96 * std)[exact != 0]
    assert float(inside.double().mean()) > 0.8


def test_scales_order_and_batches():
    data = darcy("p-to-g", N)
    context = single(data.test, 10)
    model = build(context)
    kernel = model(context).values
    scaled = Context(-3 * context.U, 0.01 * context.F, context.y, context.x)
    assert relative_difference(model(scaled).values, -0.01 / 3 * kernel) < 1e-5
    assert relative_difference(model(context.select(torch.arange(10).flip(0))).values, kernel) < 1e-5
    batch = data.test.batch(torch.arange(20).reshape(2, 10), torch.arange(3))
    together = model(batch).values
    assert together.shape == (2, 3, N * N, N * N)
    assert relative_difference(together[0, 0], kernel) < 1e-5


def test_another_mesh_takes_the_same_weights():
    coarse, fine = darcy("p-to-g", N), darcy("p-to-g", 13)
    model = build(single(coarse.test, 12))
    inside = torch.from_numpy(interior(13))
    kernel = model(single(fine.test, 20)).values[inside][:, inside]
    assert relative_difference(kernel, truth(fine.test)[inside][:, inside]) < 0.01


def test_outputs_on_some_nodes_only():
    data = darcy("p-to-g", N)
    context = single(data.test, 12)
    model = build(context)
    x = grids.Grid(context.x.points[INSIDE], context.x.weights[INSIDE])
    kernel = model(Context(context.U, context.F[INSIDE], context.y, x)).values
    assert relative_difference(kernel[:, INSIDE], truth(data.test)[INSIDE][:, INSIDE]) < 1e-3


def test_the_solution_operator_is_found():
    data = darcy("g-to-p", N)
    context = single(data.test, 12)
    model = build(context, SolutionPosteriorMap)
    posterior = model.posterior(context)
    assert relative_difference(posterior.mean, truth(data.test)) < 1e-3
    mean, predicted_std = posterior.predict(data.heldout.u[0].mT)  # pyright: ignore
    exact = data.heldout.f[0].mT
    assert relative_difference(mean, exact) < 1e-3
    assert ((mean - exact).abs() <= 1.96 * predicted_std + 1e-12).double().mean() > 0.9
    std = posterior.std  # pyright: ignore
    assert ((posterior.mean - truth(data.test)).abs() <= 1.96 * std + 1e-12).double().mean() > 0.9
    batch = data.test.batch(torch.arange(24).reshape(2, 12), torch.arange(2))
    assert relative_difference(model(batch).values[0, 0], posterior.mean) < 1e-5


def test_the_error_of_solutions_is_that_of_perturbed_operators():
    """First order: δp = -G δA p, by perturbing the strengths of one node's bonds."""
    data = darcy("g-to-p", N)
    context = single(data.test, 12)
    posterior = build(context, SolutionPosteriorMap).posterior(context)
    local = posterior.local  # pyright: ignore
    strengths = local.strengths.clone()
    strengths[20] *= 1 + 1e-6
    moved = torch.linalg.inv(local.lattice.rows_of(strengths, local.reach)[..., INSIDE])
    p = data.test.f[0, :1].mT
    change = local.lattice.rows_of(strengths - local.strengths, local.reach) @ p
    g = data.test.u[0, :1].mT[INSIDE]
    torch.testing.assert_close((moved - posterior.solution) @ g, -posterior.solution @ change, rtol=1e-3, atol=1e-12)  # pyright: ignore


def test_what_cannot_be_taken_is_refused():
    data = darcy("p-to-g", N)
    context = single(data.test, 5)
    model = build(context)
    with pytest.raises(InputError, match="nothing to discover"):
        model(Context(context.U, 0 * context.F, context.y, context.x))
    with pytest.raises(InputError, match="plane mesh"):
        LocalPosteriorMap(
            ContextShape.of(Context(context.U[:9], context.F[:1], grids.radii(1, 9), grids.point())), LocalOptions()
        )
    with pytest.raises(InputError, match="at least one step"):
        LocalOptions(0)
    solution = build(context, SolutionPosteriorMap)
    some = grids.Grid(context.x.points[INSIDE], context.x.weights[INSIDE])
    with pytest.raises(InputError, match="same nodes"):
        solution(Context(context.U, context.F[INSIDE], context.y, some))
    with pytest.raises(InputError, match="nothing to discover"):
        solution(Context(context.U, 0 * context.F, context.y, context.x))


def test_every_parameter_is_trained():
    data = darcy("p-to-g", 7, truth=False)
    context = data.train.batch(torch.arange(30)[None], torch.arange(2))
    objective = LocalLoss(build(context), context.y, context.x)
    losses = objective(context.U, context.F, 1)
    assert losses.shape == (1, 2)
    losses.sum().backward()
    assert [n for n, p in objective.named_parameters() if p.grad is None or not p.grad.abs().max() > 0] == []


def test_training_learns_which_bonds_matter(tmp_path):
    data = darcy("p-to-g", 7, truth=False)
    systems = data.train.select(data.train.names[:12])
    recipe = Recipe(epochs=8, batch=4, lr=0.05, precision="float64", clip=1.0, random_draws=True, every=8)
    train("local-posterior", LocalOptions(2), systems, 20, recipe, tmp_path, about={"problem": "darcy"})
    model, _ = load_model(tmp_path)
    assert isinstance(model, LocalPosteriorMap)
    moved = model.prior.envelope - LocalPrior(LocalOptions(2)).envelope
    assert moved[1] > moved[2:].max()
    solution = SolutionPosteriorMap(model.shape, model.options).double()
    solution.load_state_dict(model.state_dict())


def test_only_the_local_map_is_trained(tmp_path):
    data = darcy("g-to-p", 7, truth=False)
    with pytest.raises(InputError, match="takes the weights of a local-posterior"):
        train("solution-posterior", LocalOptions(2), data.train, 20, Recipe(precision="float64"), tmp_path, about={})
    with pytest.raises(InputError, match="float64"):
        train("local-posterior", LocalOptions(2), data.train, 20, Recipe(), tmp_path, about={})
