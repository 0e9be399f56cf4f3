"""Solutions: against a manufactured one, against scikit-fem, and one solver against the other."""

import numpy as np
import pytest
import skfem
import torch
from scipy.interpolate import BarycentricInterpolator

from kernelmap.problems.mechanics.forces import TRAINING, ForceField, evaluate
from kernelmap.problems.mechanics.solver.assembly import Body
from kernelmap.problems.mechanics.solver.elements import Mesh
from kernelmap.problems.mechanics.solver.matrices import body_forces
from kernelmap.problems.mechanics.solver.newton import newton
from kernelmap.problems.mechanics.solver.solve import solve

SIDES = ("left", "right", "bottom", "top")


def clamped(mesh: Mesh, modulus: np.ndarray) -> Body:
    free = np.ones((2, len(mesh.points)), bool)
    free[:, mesh.on(*SIDES)] = False
    return Body(mesh, modulus, free)


def exact(x: torch.Tensor) -> torch.Tensor:
    """A displacement that vanishes on the boundary of the unit square, with strains up to about 40 %."""
    bubble = torch.sin(torch.pi * x[0]) * torch.sin(torch.pi * x[1])
    return torch.stack([0.1 * bubble * torch.exp(x[1]), -0.08 * bubble * torch.cos(2 * x[0])])


def exact_force(x: torch.Tensor) -> torch.Tensor:
    """-div P for E = 1, by differentiating the energy."""
    mu, lam = 1 / 2.6, 0.3 / (1.3 * 0.4)

    def density(F: torch.Tensor) -> torch.Tensor:
        J = F[0, 0] * F[1, 1] - F[0, 1] * F[1, 0]
        return mu / 2 * ((F * F).sum() - 2 - 2 * torch.log(J)) + lam / 2 * ((J**2 - 1) / 2 - torch.log(J))

    def stress(x: torch.Tensor) -> torch.Tensor:
        return torch.func.grad(density)(torch.eye(2, dtype=x.dtype) + torch.func.jacfwd(exact)(x))

    return -torch.einsum("ijj->i", torch.func.jacfwd(stress)(x))


def at(function, points: np.ndarray) -> np.ndarray:
    return torch.func.vmap(function)(torch.from_numpy(points)).numpy().T


def l2_error(mesh: Mesh, u: np.ndarray) -> float:
    """‖u_h - u‖ with 4 x 4 Gauss points in every cell (or triangle, by folding the square onto it)."""
    t, w = np.polynomial.legendre.leggauss(4)
    s, t = np.meshgrid((t + 1) / 2, (t + 1) / 2, indexing="ij")
    weights = np.outer(w, w) / 4
    corner = mesh.width * np.stack(np.divmod(np.arange(mesh.cells**2), mesh.cells), axis=1)
    (patch,) = mesh.patches
    values = u[:, patch.nodes]
    if mesh.kind == "p1":
        pieces = [
            (s, s * t, s / 2, np.stack([1 - s, 0 * s, s - s * t, s * t])),
            (s * t, s, s / 2, np.stack([1 - s, s - s * t, 0 * s, s * t])),
        ]
        factor = 2.0
    else:
        axis = np.linspace(0, 1, mesh.degree + 1)
        lagrange = BarycentricInterpolator(axis, np.eye(len(axis)))
        phi = np.einsum("pa,qb->abpq", lagrange(s[:, 0]), lagrange(t[0])).reshape(-1, *s.shape)
        pieces, factor = [(s, t, np.ones_like(s), phi)], 1.0
    total = 0.0
    for x, y, jacobian, phi in pieces:
        points = corner[:, None, None] + mesh.width * np.stack([x, y], axis=-1)
        error = np.einsum("cea,apq->cepq", values, phi) - at(exact, points.reshape(-1, 2)).reshape(2, -1, *s.shape)
        total += factor * (np.square(error) * weights * jacobian).sum() * mesh.width**2
    return np.sqrt(total)


@pytest.mark.parametrize(("kind", "order"), [("p1", 2), ("q1", 2), ("q2", 3)])
def test_order_of_convergence(kind, order):
    errors = []
    for cells in (8, 16, 32):
        mesh = Mesh(kind, cells, 1.0)
        loads = body_forces(mesh, at(exact_force, mesh.points)[:, None])
        u, converged = solve(clamped(mesh, np.ones(cells**2)), loads, np.zeros_like(loads))
        assert converged.all()
        errors.append(l2_error(mesh, u[:, 0]))
    rates = np.log2(np.divide(errors[:-1], errors[1:]))
    np.testing.assert_allclose(rates, order, atol=0.15)


def skfem_newton(mesh: Mesh, modulus: np.ndarray, force: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The same discrete problem by Newton in scikit-fem: displacement prescribed on bottom and top, sides free."""
    axis = np.linspace(0, 1, mesh.cells + 1)
    kind = skfem.MeshTri if mesh.kind == "p1" else skfem.MeshQuad
    element = {"p1": skfem.ElementTriP1, "q1": skfem.ElementQuad1, "q2": skfem.ElementQuad2}[mesh.kind]()
    order = {"p1": 1, "q1": 3, "q2": 5}[mesh.kind]
    basis = skfem.Basis(kind.init_tensor(axis, axis), skfem.ElementVector(element), intorder=order)
    i, j = np.floor(basis.mesh.p[:, basis.mesh.t].mean(axis=1) * mesh.cells).astype(int)
    E = modulus.reshape(mesh.cells, mesh.cells)[i, j][:, None]
    mu, lam = E / 2.6, E * 0.3 / (1.3 * 0.4)

    def kinematics(w):
        F = w["u"].grad + np.eye(2)[:, :, None, None]
        return F, np.linalg.det(F.T).T, np.linalg.inv(F.T).T.transpose(1, 0, 2, 3)

    @skfem.LinearForm
    def internal(v, w):
        F, J, T = kinematics(w)
        return np.einsum("ij...,ij...", mu * F + (lam / 2 * (J**2 - 1) - mu) * T, v.grad)

    @skfem.BilinearForm
    def tangent(u, v, w):
        _, J, T = kinematics(w)
        turned = np.einsum("il...,kl...,kj...->ij...", T, u.grad, T)
        spread = lam * J**2 * np.einsum("ij...,ij...", T, u.grad)
        dP = mu * u.grad - (lam / 2 * (J**2 - 1) - mu) * turned + spread * T
        return np.einsum("ij...,ij...", dP, v.grad)

    @skfem.BilinearForm
    def mass(u, v, _):
        return u[0] * v[0] + u[1] * v[1]

    row = mesh.degree * mesh.cells
    nodes = np.rint(basis.doflocs[:, ::2] * row).astype(int).T @ np.array([row + 1, 1])
    load = mass.assemble(skfem.Basis(basis.mesh, basis.elem, intorder=4)) @ force[:, nodes].T.ravel()
    fixed = np.flatnonzero((basis.doflocs[1] == 0) | (basis.doflocs[1] == 1))
    x = start[:, nodes].T.ravel()
    for _ in range(8):
        state = basis.interpolate(x)
        residual = load - internal.assemble(basis, u=state)
        x += skfem.solve(*skfem.condense(tangent.assemble(basis, u=state), residual, D=fixed))
    u = np.empty_like(force)
    u[:, nodes] = x.reshape(-1, 2).T
    return u


@pytest.mark.parametrize("mesh", [Mesh("p1", 12, 1.0), Mesh("q1", 12, 1.0), Mesh("q2", 6, 1.0)], ids=lambda m: m.kind)
def test_agreement_with_scikit_fem(mesh):
    """A heterogeneous body with a force, prescribed displacements and free sides, by both of our solvers."""
    modulus = np.random.default_rng(0).uniform(1, 100, mesh.cells**2)
    force = 5 * evaluate(ForceField(modes=3).draw(1, TRAINING), np.unique(mesh.points[:, 0]))
    free = np.ones((2, len(mesh.points)), bool)
    free[:, mesh.on("bottom", "top")] = False
    body = Body(mesh, modulus, free)
    start = np.stack([0.1 * mesh.points[:, 1], 0.2 * mesh.points[:, 1]])
    truth = skfem_newton(mesh, modulus, force[:, 0], start)
    loads = body_forces(mesh, force)
    by_newton, converged = newton(body, loads[:, 0], start)
    assert converged
    assert np.abs(by_newton - truth).max() < 1e-8 * np.abs(truth).max()
    by_gradients, _ = solve(body, loads, start[:, None])
    assert np.abs(by_gradients[:, 0] - truth).max() < 1e-6 * np.abs(truth).max()


def digit_like(cells: int) -> np.ndarray:
    """A stiff ring in a soft body."""
    x, y = (np.indices((cells, cells)) + 0.5) / cells - 0.5
    return np.where(np.abs(np.hypot(x, y) - 0.25) < 0.08, 100.0, 1.0).ravel()


@pytest.fixture(scope="module")
def ring():
    mesh = Mesh("q2", 14, 1.0)
    return clamped(mesh, digit_like(14)), np.unique(mesh.points[:, 0])


def test_conjugate_gradients_agree_with_newton(ring):
    body, axis = ring
    loads = body_forces(body.mesh, evaluate(ForceField().draw(20, TRAINING), axis))
    u, converged = solve(body, loads, np.zeros_like(loads))
    assert converged.all()
    for load in range(4):
        truth, converged = newton(body, loads[:, load], np.zeros_like(loads[:, load]))
        assert converged
        assert np.linalg.norm(u[:, load] - truth) < 1e-6 * np.linalg.norm(truth)


def test_a_load_does_not_depend_on_its_company(ring):
    body, axis = ring
    loads = body_forces(body.mesh, evaluate(ForceField().draw(5, TRAINING), axis))
    together, _ = solve(body, loads, np.zeros_like(loads))
    alone, _ = solve(body, loads[:, 3:4], np.zeros_like(loads[:, 3:4]))
    np.testing.assert_allclose(together[:, 3:4], alone, rtol=0, atol=1e-12)


def test_no_load_no_displacement(ring):
    body, _ = ring
    nothing = np.zeros((2, 2, len(body.mesh.points)))
    u, converged = solve(body, nothing, nothing)
    assert converged.all()
    assert not u.any()
    assert newton(body, nothing[:, 0], nothing[:, 0])[1]


def test_a_load_that_inverts_elements_is_reported_and_the_rest_kept(ring):
    body, axis = ring
    loads = body_forces(body.mesh, evaluate(ForceField().draw(3, TRAINING), axis))
    loads[:, 1] *= 1e6
    u, converged = solve(body, loads, np.zeros_like(loads))
    assert converged.tolist() == [True, False, True]
    assert np.isnan(u[:, 1]).all()
    assert np.isfinite(u[:, [0, 2]]).all()


def test_a_stiffness_beyond_single_precision_is_left_to_newton():
    """Blocks ten million times as stiff as others, one side held: the factor of the preconditioner is not positive."""
    mesh = Mesh("q2", 8, 1.0)
    stiff = np.random.default_rng(1).uniform(size=(4, 4)) >= 0.5
    free = np.ones((2, len(mesh.points)), bool)
    free[:, mesh.on("bottom")] = False
    body = Body(mesh, np.kron(np.where(stiff, 1e7, 1.0), np.ones((2, 2))).ravel(), free)
    load = 0.05 * body_forces(mesh, evaluate(ForceField().draw(1, TRAINING), np.unique(mesh.points[:, 0])))
    u, converged = solve(body, load, np.zeros_like(load))
    truth, _ = newton(body, load[:, 0], np.zeros_like(load[:, 0]))
    assert converged.all()
    assert np.linalg.norm(u[:, 0] - truth) < 1e-6 * np.linalg.norm(truth)
