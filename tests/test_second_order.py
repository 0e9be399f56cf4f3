"""What larger loads add to the responses of a medium: the forces, their coefficients, and predictions with them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.grids import rectangle
from kernelmap.core.metrics import relative_difference
from kernelmap.evaluation.microstructure import interior
from kernelmap.maps import NoOptions
from kernelmap.posterior.elastic.map import MaterialPosteriorMap
from kernelmap.posterior.elastic.medium import Medium
from kernelmap.posterior.elastic.second_order import coefficients, quadratic_forces, second_order
from kernelmap.problems.mechanics.solver.assembly import Body, deformation, internal_forces
from kernelmap.problems.mechanics.solver.elements import Mesh
from kernelmap.problems.mechanics.solver.matrices import body_forces
from kernelmap.problems.mechanics.solver.solve import solve

NODES = 7
GRID = rectangle(NODES).with_components(2)
FREE = interior(rectangle(NODES)).repeat(2).nonzero()[:, 0]
MU, LAM = 1 / 2.6, 0.3 / (1.3 * 0.4)
NEO_HOOKEAN = torch.tensor([(MU + LAM) / 2, MU / 6 + LAM / 3, -(MU + LAM)], dtype=torch.float64)
"""From ψ = μ/2 (F:F - 2 - 2 ln J) + λ/2 ((J² - 1)/2 - ln J) with J = 1 + t + D, t = tr ε: its third order is
(μ + λ) t D - (μ/3 + λ/6) t³, and D = det H = (t² - 2 ε:ε + H:H) / 2."""


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


MEDIUM = Medium.of(GRID, FREE, 0.3)
STIFFNESS = random(MEDIUM.count, seed=2).exp()


def solver_body() -> Body:
    mesh = Mesh("q1", NODES - 1, 1.0)
    free = np.zeros((2, len(mesh.points)), bool)
    free.reshape(-1)[FREE] = True
    return Body(mesh, STIFFNESS.numpy(), free)


def as_field(v: torch.Tensor) -> np.ndarray:
    """(free, n) as the solver's displacements (2, n, nodes)."""
    everywhere = torch.zeros(GRID.size, v.shape[1], dtype=torch.float64)
    everywhere[FREE] = v
    return np.ascontiguousarray(everywhere.reshape(2, -1, v.shape[1]).transpose(1, 2).numpy())


def as_values(field: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(field).transpose(1, 2).reshape(GRID.size, -1)[FREE]


def test_forces_are_the_second_order_of_the_solvers():
    """The even part of the internal forces of ±t v, over t²."""
    body, v, t = solver_body(), 0.05 * random(len(FREE), 3), 1e-2
    up, down = (internal_forces(body, deformation(body, as_field(s * t * v))) for s in (1, -1))
    expected = as_values((up + down) / 2) / t**2
    found = (NEO_HOOKEAN[:, None, None] * quadratic_forces(MEDIUM, STIFFNESS, v)).sum(dim=0)
    assert relative_difference(found, expected) < 1e-4


def test_forces_are_quadratic():
    v = random(len(FREE), 2)
    torch.testing.assert_close(
        quadratic_forces(MEDIUM, STIFFNESS, -3 * v), 9 * quadratic_forces(MEDIUM, STIFFNESS, v), rtol=1e-10, atol=1e-8
    )


@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_coefficients_are_found(scale):
    terms, w = scale * random(3, 50, 2), torch.tensor([1.0, 4.0]).double()
    alpha = torch.tensor([1.0, -2.0, 0.5]).double()
    found, covariance = coefficients(terms, (alpha[:, None, None] * terms).sum(dim=0), w)
    assert relative_difference(found, alpha) < 1e-8
    A = (terms * w.sqrt()).flatten(1)
    assert relative_difference(covariance, torch.linalg.inv(A @ A.mT)) < 1e-8


def solved(d: int, seed: int, amplitude: float) -> Context:
    """Pairs of the nonlinear solver on the same elements."""
    body = solver_body()
    modes = torch.stack([(k * np.pi * GRID.points).cos().prod(dim=1) for k in (1, 2, 3)])
    f = amplitude * (random(2, d, 3, seed=seed) @ modes)
    u, converged = solve(body, body_forces(body.mesh, f.numpy()), np.zeros((2, d, NODES**2)))
    assert converged.all()
    U, F = (x.transpose(1, 2).reshape(GRID.size, d) for x in (f, torch.from_numpy(u)))
    return Context(U.contiguous(), F.contiguous(), GRID, GRID)


def test_predictions_of_large_loads_are_better_than_the_kernels():
    context, other = solved(20, 0, 0.5), solved(10, 1, 0.5)
    model = MaterialPosteriorMap(ContextShape.of(context), NoOptions()).double()
    model.prior.noise.data.fill_(1e-3)
    posterior = model.posterior(context)
    linear = relative_difference(model(context).apply(other.U), other.F)
    assert linear > 0.03
    assert relative_difference(posterior.respond(other.U), other.F) < linear / 3
    mean, std = posterior.predict(other.U)
    torch.testing.assert_close(mean, posterior.respond(other.U))
    assert relative_difference(posterior.second, NEO_HOOKEAN) < 0.2
    moves = other.F != 0
    assert ((mean - other.F).abs() <= 1.96 * std)[moves].double().mean() > 0.85


def test_bands_grow_for_loads_larger_than_those_seen():
    context = solved(20, 0, 0.15)
    posterior = MaterialPosteriorMap(ContextShape.of(context), NoOptions()).double().posterior(context)
    for amplitude in (0.15, 0.5, 0.7):
        other = solved(10, 1, amplitude)
        mean, std = posterior.predict(other.U)
        inside = (mean - other.F).abs() <= 1.96 * std
        assert inside[other.F != 0].double().mean() > 0.9


def test_errors_grow_with_the_load_beside_the_coefficients():
    """Ten times the loads seen: more than ten times the error, with coefficients that are known exactly."""
    context = solved(20, 0, 0.15)
    posterior = MaterialPosteriorMap(ContextShape.of(context), NoOptions()).double().posterior(context)
    known = replace(posterior, second_covariance=torch.zeros_like(posterior.second_covariance))
    seen, larger = (known.predict(factor * context.U).std for factor in (1, 10))
    assert float((larger / seen)[seen > 0].max()) > 20


def test_coefficients_that_small_noisy_loads_leave_open_widen_the_band():
    context, other = solved(20, 0, 0.005), solved(10, 1, 0.5)
    noise = 0.02 * context.F.square().mean().sqrt() * random(*context.F.shape, seed=5) * context.F.ne(0)
    noisy = Context(context.U, context.F + noise, GRID, GRID)
    mean, std = MaterialPosteriorMap(ContextShape.of(context), NoOptions()).double().posterior(noisy).predict(other.U)
    inside = (mean - other.F).abs() <= 1.96 * std
    assert inside[other.F != 0].double().mean() > 0.9


def test_a_batch_responds_as_its_systems_do():
    contexts = [solved(6, seed, 0.5) for seed in (0, 1)]
    model = MaterialPosteriorMap(ContextShape.of(contexts[0]), NoOptions()).double()
    batch = Context(torch.stack([c.U for c in contexts]), torch.stack([c.F for c in contexts]), GRID, GRID)
    U = contexts[0].U[:, :2]
    together = model.posterior(batch).respond(U)
    for i, context in enumerate(contexts):
        assert relative_difference(together[i], model.posterior(context).respond(U)) < 1e-8


def test_small_loads_respond_linearly():
    G = torch.linalg.inv(MEDIUM.stiffness(STIFFNESS))
    v = 1e-9 * random(len(FREE), 2)
    assert second_order(MEDIUM, STIFFNESS, G, v).norm() < 1e-6 * v.norm()
