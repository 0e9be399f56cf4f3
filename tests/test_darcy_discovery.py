"""Darcy flow from a user's fields to kernel, phases and errors, by the shipped model; tokens of b and their kernel."""

import json

import numpy as np
import pytest
import torch

from kernelmap import Context, discover, load_model
from kernelmap.core.errors import InputError
from kernelmap.core.grids import mesh, rectangle
from kernelmap.evaluation.microstructure import far_mass, microstructure
from kernelmap.io.measurements import read_measurements
from kernelmap.posterior.pointwise import NOISE, pointwise
from kernelmap.posterior.stencil.solution import SolutionPosteriorMap
from kernelmap.problems.darcy import DarcyData, darcy
from kernelmap.problems.darcy.scheme import pressures
from kernelmap.problems.darcy.tokens import known_sources, response_tokens, smoothness

N, PAIRS = 11, 25


@pytest.fixture(scope="module")
def data() -> DarcyData:
    return darcy("p-to-g", N)


def fields(data: DarcyData, system: int = 0) -> dict[str, np.ndarray]:
    """What a user would write: pressures u and sources f of one system."""
    axis = np.linspace(0, 1, N)
    u, f = (values[system, :PAIRS].reshape(-1, N, N).numpy() for values in (data.test.u, data.test.f))
    return {"x1": axis, "x2": axis, "u": u, "f": f}


def test_local_kernel_and_phases_from_a_file(data, tmp_path):
    np.savez(tmp_path / "flow.npz", **fields(data))  # pyright: ignore
    measured = read_measurements(tmp_path / "flow.npz")
    assert (measured.found["layout"], measured.found["pairs"]) == ("fields", str(PAIRS))
    found = discover(load_model("darcy")[0], measured.context)
    assert found.check is not None
    assert found.check.error is not None
    assert found.check is not None
    assert found.check.error < 1e-3
    assert far_mass(found.kernel) < 1e-3
    assert data.b is not None
    phases = microstructure(found.kernel, found.std)
    assert phases.accuracy((data.b[0] > 7.5).flatten()) > 0.97
    assert any("121 nodes, the model was trained on 441" in diagnostic.seen for diagnostic in found.diagnostics)
    mean, std = found.predict(data.heldout.u[0, :3].T)
    inside = phases.known
    assert ((mean - data.heldout.f[0, :3].T).abs() <= 4 * std)[inside].all()


def test_the_other_way_round_is_a_solution_operator(data):
    """From source to pressure the same weights give the Green's function, chosen by the data."""
    values = fields(data)
    grid = rectangle(N)
    U, F = (torch.from_numpy(values[name].reshape(PAIRS, -1).T.copy()) for name in ("f", "u"))
    model = load_model("darcy")[0].double()
    assert isinstance(model.select_model(Context(U, F, grid, grid)), SolutionPosteriorMap)  # pyright: ignore
    found = discover(model, Context(U, F, grid, grid))
    assert found.check is not None
    assert found.check.error is not None
    assert found.check.coverage is not None
    assert found.check is not None
    assert found.check.error < 1e-3
    assert found.check.coverage > 0.9
    truth = darcy("g-to-p", N).test.kernels
    assert truth is not None
    assert float((found.kernel.values - truth[0]).norm() / truth[0].norm()) < 1e-3


def test_report_of_a_plane_kernel(data, tmp_path, kernelmap):
    np.savez(tmp_path / "flow.npz", **fields(data))  # pyright: ignore
    code, out, err = kernelmap("discover", tmp_path / "flow.npz", "--model", "darcy", "--out", tmp_path / "found")
    assert code == 0, err
    assert "error on pairs kept back" in out
    page = (tmp_path / "found" / "report.html").read_text()
    assert "Two phases" in page
    assert "<svg" in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x1": np.array([0.0, 0.1, 0.3])}, "x1 must hold at least 3 mesh points, increasing in equal steps"),
        ({"u": np.zeros((4, 5, 5))}, r"u must have shape \(d, 11, 11\).*got \(4, 5, 5\)"),
        ({"f": np.zeros((N, N, PAIRS))}, "axes seem swapped: pairs go first"),
        ({"f": np.zeros((3, N, N))}, "u holds 25 fields but f holds 3"),
        ({"u": np.full((PAIRS, N, N), np.nan)}, "NaN or infinite"),
    ],
)
def test_bad_fields(data, tmp_path, change, message):
    np.savez(tmp_path / "flow.npz", **(fields(data) | change))  # pyright: ignore
    with pytest.raises(InputError, match=message):
        read_measurements(tmp_path / "flow.npz")


@pytest.mark.parametrize("task", ["p-to-g", "g-to-p", "b-to-p"])
def test_evaluate(kernelmap, tmp_path, task):
    path = tmp_path / "errors.json"
    code, _, err = kernelmap("evaluate", "darcy", "darcy", "--task", task, "--d", 25, "--n", N, "--json", path)
    assert code == 0, err
    test = json.loads(path.read_text())["systems"]["test"]
    assert test["operator_error_heldout"] < {"p-to-g": 6e-3, "g-to-p": 0.06, "b-to-p": 0.08}[task]
    if task == "p-to-g":
        assert test["microstructure_accuracy"] > 0.97
        assert test["kernel_error"] < 0.07
        assert test["coverage95"] > 0.9
    if task == "b-to-p":
        assert test["kernel_error"] is None


def test_options_of_another_problem_are_refused(kernelmap):
    code, _, err = kernelmap("evaluate", "darcy", "darcy", "--variant", "paper")
    assert code == 2
    assert "--variant" in err


def test_tokens_converge_to_the_responses_of_the_medium():
    """The steps contract by |1 - b / 7.5| <= 0.6: after 50 of them the tokens are exact solutions."""
    b = np.where(np.random.default_rng(0).random((2, 9, 9)) < 0.5, 3.0, 12.0)
    exact = np.stack([pressures(each, known_sources(9)) for each in b])
    errors = [np.abs(response_tokens(b, steps) - exact).max() / np.abs(exact).max() for steps in (2, 4, 50)]
    assert errors[1] < 0.5 * errors[0]
    assert errors[2] < 1e-9


def test_pointwise_is_a_ridge_regression_at_every_point():
    generator = torch.Generator().manual_seed(0)
    grid = rectangle(3)
    spread = smoothness()[:4].tolist()
    U = torch.randn(4 * 9, 7, generator=generator, dtype=torch.float64)
    F = torch.randn(9, 7, generator=generator, dtype=torch.float64)
    found = pointwise(Context(U, F, grid.with_components(4), grid), spread)
    predicted = found.kernel.apply(U)
    error = NOISE * 7 * U.square().mean()
    for m in range(9):
        X = U.reshape(4, 9, 7)[:, m]
        c = torch.linalg.solve(X @ X.T + error * torch.diag(torch.tensor(spread).double() ** -2), X @ F[m])
        torch.testing.assert_close(predicted[m], c @ X)
    assert found.std.shape == (9, 36)
    with pytest.raises(InputError, match="4 components, but 3"):
        pointwise(Context(U, F, grid.with_components(4), grid), spread[:3])


def test_mesh_of_a_rectangle():
    grid = mesh(torch.linspace(0, 2, 5), torch.linspace(0, 1, 3))
    assert grid.points.shape == (15, 2)
    assert float(grid.weights[0]) == pytest.approx(0.25)
    assert grid.points[1].tolist() == [0, 0.5]
