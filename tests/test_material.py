"""The material posterior map: a medium's equilibrium, the stiffnesses it finds, and what it keeps."""

import dataclasses

import pytest
import torch

from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid, mesh, rectangle
from kernelmap.core.metrics import relative_difference
from kernelmap.evaluation.microstructure import interior
from kernelmap.maps import NoOptions
from kernelmap.posterior.elastic.fit import Fit, Problem
from kernelmap.posterior.elastic.map import MaterialPosteriorMap
from kernelmap.posterior.elastic.medium import Medium, cell_modes
from kernelmap.posterior.elastic.poisson import poisson_of

NODES = 7
GRID = rectangle(NODES).with_components(2)
FREE = interior(rectangle(NODES)).repeat(2).nonzero()[:, 0]


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def medium_of(poisson: float = 0.3) -> Medium:
    return Medium.of(GRID, FREE, poisson)


def stiffnesses(seed: int) -> torch.Tensor:
    return random((NODES - 1) ** 2, seed=seed).exp()


def pairs_of(c: torch.Tensor, d: int = 30, seed: int = 1, poisson: float = 0.3) -> Context:
    medium = medium_of(poisson)
    f = random(GRID.size, d, seed=seed)
    u = torch.zeros_like(f)
    u[FREE] = torch.linalg.solve(medium.stiffness(c), medium.mass @ f)
    return Context(f, u, GRID, GRID)


def model_of(context: Context) -> MaterialPosteriorMap:
    model = MaterialPosteriorMap(ContextShape.of(context), NoOptions()).double()
    model.prior.noise.data.fill_(1e-3)
    model.prior.length.data.fill_(0.2)
    return model


def test_rigid_motions_cost_nothing_and_strains_what_they_should():
    """A uniform strain of a cell: energy density μ ε:ε + λ/2 (tr ε)², here with ε = diag(1, 0)."""
    steps, nu = [0.5, 0.25], 0.3
    modes = cell_modes(steps, nu)
    x = torch.tensor([0, 0, 0.5, 0.5, 0, 0, 0, 0], dtype=torch.float64)
    y = torch.tensor([0, 0.25, 0, 0.25, 0, 0, 0, 0], dtype=torch.float64)
    rotation = y - x.roll(4)
    for still in (torch.tensor([1.0] * 4 + [0.0] * 4).double(), rotation):
        assert (modes @ still).abs().max() < 1e-12
    mu, lam = 1 / (2 * (1 + nu)), nu / ((1 + nu) * (1 - 2 * nu))
    assert float((modes @ x).square().sum()) == pytest.approx(0.125 * (2 * mu + lam))
    with pytest.raises(InputError, match="Poisson"):
        cell_modes(steps, 0.5)


def test_the_medium_is_the_solvers_q1_body_at_rest():
    import numpy as np

    from kernelmap.problems.mechanics.solver.assembly import Body, deformation
    from kernelmap.problems.mechanics.solver.elements import Mesh
    from kernelmap.problems.mechanics.solver.matrices import body_forces, stiffness

    c, mesh = stiffnesses(0), Mesh("q1", NODES - 1, 1.0)
    free = np.zeros((2, len(mesh.points)), bool)
    free.reshape(-1)[FREE] = True
    body = Body(mesh, c.numpy(), free)
    K = stiffness(body, deformation(body, np.zeros((2, 1, len(mesh.points))))).toarray()
    assert relative_difference(medium_of().stiffness(c), torch.from_numpy(K)) < 1e-12
    f = random(GRID.size, 3)
    loads = body_forces(mesh, f.T.reshape(3, 2, -1).transpose(0, 1).numpy())
    expected = torch.from_numpy(loads.transpose(1, 0, 2).reshape(3, -1)).mT[FREE]
    assert relative_difference(medium_of().mass @ f, expected) < 1e-12


def test_normal_equations_are_those_of_the_jacobian():
    medium, context = medium_of(), pairs_of(stiffnesses(0), d=4)
    b, u = medium.mass @ context.U, context.F[FREE]
    w = torch.rand(4, dtype=torch.float64) + 0.5
    problem = Problem(medium, b, u, w, torch.zeros(medium.count).double(), torch.eye(medium.count).double())
    theta = 0.3 * random(medium.count, seed=5)

    def residual(theta: torch.Tensor) -> torch.Tensor:
        return ((u - torch.linalg.solve(medium.stiffness(theta.exp()), b)) * w.sqrt()).flatten()

    J = torch.autograd.functional.jacobian(residual, theta)
    assert isinstance(J, torch.Tensor)
    hessian, slope = problem.normal_equations(problem.at(theta))
    assert relative_difference(hessian, J.mT @ J + torch.eye(medium.count).double()) < 1e-5
    assert relative_difference(slope, -J.mT @ residual(theta) - theta) < 1e-10


def test_finds_the_stiffnesses_and_carries_over_to_other_loads():
    c = stiffnesses(2)
    context, other = pairs_of(c), pairs_of(c, seed=9)
    model = model_of(context)
    posterior = model.posterior(context)
    assert relative_difference(posterior.theta, c.log()) < 0.02
    assert relative_difference(model(context).apply(other.U), other.F) < 2e-3
    mean, std = posterior.predict(other.U)
    assert relative_difference(mean, model(context).apply(other.U)) < 1e-5  # the data are linear
    inside = (mean - other.F).abs() <= 1.96 * std
    assert inside.double().mean() > 0.9
    assert posterior.std.shape == (GRID.size, GRID.size)
    assert posterior.variance_reduction.shape == (GRID.size, GRID.size)
    assert float(posterior.relative_residual) < 1e-3
    assert 0 < posterior.informed_directions <= len(c)
    assert ((posterior.theta - c.log()).abs() < 4 * posterior.spread).all()


def test_order_units_and_batch_do_not_matter():
    contexts = [pairs_of(stiffnesses(seed), d=12) for seed in (2, 3)]
    model = model_of(contexts[0])
    alone = [model(context).values for context in contexts]
    shuffled = contexts[0].select(torch.arange(11, -1, -1))
    assert relative_difference(model(shuffled).values, alone[0]) < 1e-6
    scaled = Context(contexts[0].U * 1e3, contexts[0].F * 1e-2, GRID, GRID)
    assert relative_difference(model(scaled).values * 1e5, alone[0]) < 1e-6
    batch = Context(contexts[0].U[None], torch.stack([context.F for context in contexts]), GRID, GRID)
    together = model(batch)
    assert relative_difference(together[0].values, alone[0]) < 1e-9
    assert together.values.shape == (2, GRID.size, GRID.size)


def test_fewer_pairs_tell_less():
    c = stiffnesses(2)
    spreads = [model_of(pairs_of(c)).posterior(pairs_of(c, d=d)).spread.mean() for d in (2, 8, 30)]
    assert spreads[0] > spreads[1] > spreads[2]


def test_noisy_pairs_tell_less_and_say_so():
    c = stiffnesses(2)
    context = pairs_of(c)
    noise = random(*context.F.shape, seed=7) * context.F.ne(0) * context.F.square().mean().sqrt()
    found = [model_of(context).posterior(dataclasses.replace(context, F=context.F + a * noise)) for a in (0, 0.05, 0.3)]
    spreads = [posterior.spread.mean() for posterior in found]
    assert spreads[0] < spreads[1] < spreads[2]
    assert float(found[1].relative_residual) == pytest.approx(0.05, rel=0.5)
    for posterior in found:
        assert ((posterior.theta - c.log()).abs() <= 1.96 * posterior.spread).double().mean() > 0.8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: dataclasses.replace(c, F=torch.zeros_like(c.F)), "all displacements are zero"),
        (lambda c: dataclasses.replace(c, F=c.F * (torch.arange(c.d) > 0)), "1 displacements are zero everywhere"),
        (lambda c: dataclasses.replace(c, F=c.F + 1), "must be held by at least 3"),
        (lambda c: dataclasses.replace(c, x=Grid(c.x.points.flip(0), c.x.weights, 2)), "on the same nodes"),
    ],
)
def test_bad_input(change, message):
    context = pairs_of(stiffnesses(2), d=3)
    with pytest.raises(InputError, match=message):
        model_of(context).posterior(change(context))


def test_centres_of_cells_that_are_not_square():
    grid = mesh(torch.linspace(0, 1, 5), torch.linspace(0, 1, 9)).with_components(2)
    medium = Medium.of(grid, interior(grid.with_components(1)).repeat(2).nonzero()[:, 0], 0.3)
    torch.testing.assert_close(medium.centres.amax(dim=0), torch.tensor([0.875, 0.9375]).double())


def test_needs_two_components():
    scalar = Context(torch.ones(9, 2).double(), torch.ones(9, 2).double(), rectangle(3), rectangle(3))
    with pytest.raises(InputError, match="two components"):
        MaterialPosteriorMap(ContextShape.of(scalar), NoOptions())


@pytest.mark.parametrize("side", [10.0, 0.05])
def test_any_unit_of_length_and_any_rectangle(side):
    """A specimen of 10 mm, or of 0.05 m: the same stiffnesses where u is in that unit too, and f per its area."""
    context = pairs_of(stiffnesses(2))
    grid = Grid(side * GRID.points, side**2 * GRID.weights, 2)
    scaled = Context(context.U / side, side * context.F, grid, grid)
    model = model_of(context)
    model.check_context(scaled)
    alone, other = model.posterior(context), model.posterior(scaled)
    torch.testing.assert_close(other.theta, alone.theta, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(other.spread, alone.spread, rtol=1e-6, atol=1e-6)
    assert float(other.hidden.points.max()) == pytest.approx(side * (1 - 0.5 / (NODES - 1)))  # pyright: ignore
    wide = mesh(torch.linspace(0, 2 * side, NODES), torch.linspace(0, side, NODES)).with_components(2)
    assert model.posterior(Context(context.U, context.F, wide, wide)).theta.isfinite().all()


@pytest.mark.parametrize("truth", [0.0, 0.2, 0.45])
def test_poissons_ratio_is_found_where_it_is_another(truth):
    c = stiffnesses(2)
    context, other = (pairs_of(c, seed=seed, poisson=truth) for seed in (1, 9))
    posterior = model_of(context).posterior(context)
    assert posterior.hidden is not None
    assert posterior.hidden.constants["poisson_ratio"] == pytest.approx(truth, abs=0.005)
    mean, std = posterior.predict(other.U)
    assert relative_difference(mean, other.F) < 0.01
    assert ((mean - other.F).abs() <= 1.96 * std).double().mean() > 0.9


def test_poissons_ratio_is_kept_where_it_is_the_learned_one():
    context = pairs_of(stiffnesses(2), poisson=0.305)
    model = model_of(context)
    assert model.posterior(context).medium.poisson == model.prior.poisson.item()


def test_responses_change_with_poissons_ratio_as_they_should():
    """∂A/∂ν u by differences of the stiffness."""
    c, u, step = stiffnesses(0), random(len(FREE), 2), 1e-6
    change = (medium_of(0.3 + step).stiffness(c) - medium_of(0.3 - step).stiffness(c)) / (2 * step)
    torch.testing.assert_close(medium_of().forces_of_poisson(c, u), change @ u, rtol=1e-6, atol=1e-6)


def test_the_ratio_is_that_of_a_joint_fit():
    """Change and curvature are those of least squares with the stiffnesses and the ratio free."""
    medium, context = medium_of(), pairs_of(stiffnesses(0), d=4, poisson=0.301)
    b, u, w = medium.mass @ context.U, context.F[FREE], torch.rand(4, dtype=torch.float64) + 0.5
    precision, zero = torch.eye(medium.count).double(), torch.zeros(medium.count).double()
    problem = Problem(medium, b, u, w, zero, precision)
    theta = 0.3 * random(medium.count, seed=5)
    point = problem.at(theta)
    fit = Fit(theta, point.solution, problem.normal_equations(point, torch.float64)[0])

    def response(parameters: torch.Tensor) -> torch.Tensor:
        A = medium.stiffness(parameters[1:].exp())
        change = (medium_of(0.3 + 1e-5).stiffness(theta.exp()) - medium.stiffness(theta.exp())) / 1e-5
        return (torch.linalg.solve(A + parameters[0] * change, b) * w.sqrt()).flatten()

    J = torch.autograd.functional.jacobian(response, torch.cat([theta.new_zeros(1), theta]))
    assert isinstance(J, torch.Tensor)
    A = J.mT @ J + torch.block_diag(torch.zeros(1, 1).double(), precision)
    said = poisson_of(problem, fit)
    delta = torch.linalg.solve(A, J.mT @ ((u - point.u) * w.sqrt()).flatten())[0]
    assert float(said.slope / said.curvature) == pytest.approx(float(delta), rel=1e-3)
    assert float(said.curvature) == pytest.approx(1 / float(torch.linalg.inv(A)[0, 0]), rel=1e-3)
