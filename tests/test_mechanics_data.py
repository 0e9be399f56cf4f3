"""The mechanics data set: what is in the file, that it can be resumed, and what happens when things go wrong."""

import json
import multiprocessing
import resource
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from kernelmap.core.errors import InputError
from kernelmap.problems.mechanics import ForceField, Plan, bitmaps, generate, generation, mechanics, mnist, respond
from kernelmap.problems.mechanics.forces import HELDOUT, TRAINING, evaluate
from kernelmap.problems.mechanics.images import modulus
from kernelmap.problems.mechanics.solver.assembly import deformation
from kernelmap.problems.mechanics.solver.elements import read_elements
from kernelmap.problems.mechanics.solver.matrices import body_forces
from kernelmap.problems.mechanics.solver.solve import solve
from kernelmap.problems.mechanics.specimen import clamped

PIXELS = 5
IMAGES = np.random.default_rng(0).integers(0, 256, (12, PIXELS, PIXELS), dtype=np.uint8)
PLAN = Plan(bitmaps(IMAGES), loads=6, elements="q2-5")


@pytest.fixture(scope="module")
def generated(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("mechanics") / "set.h5"
    assert generate(PLAN, path, jobs=1) == []
    assert [p.name for p in path.parent.iterdir()] == ["set.h5"]
    return path


@pytest.fixture
def images(tmp_path) -> Path:
    np.save(tmp_path / "images.npy", IMAGES)
    return tmp_path / "images.npy"


def contents(path: Path) -> dict[str, bytes]:
    with h5py.File(path) as file:
        return {name: data[()].tobytes() for name, data in file.items()}  # pyright: ignore


def test_the_file_says_what_it_holds(generated):
    with h5py.File(generated) as file:
        about = json.loads(str(file.attrs["about"]))
        shapes = {name: (data.shape, data.dtype.name) for name, data in file.items()}  # pyright: ignore
    assert shapes == {
        "force": ((7, 2, 36), "float32"),
        "displacement": ((12, 7, 2, 36), "float32"),
        "converged": ((12, 7), "bool"),
        "images": ((12, 5, 5), "uint8"),
        "modulus": ((12, 5, 5), "float32"),
    }
    assert about["elements"] == "q2-5"
    forces = about["forces"]
    assert [forces[key] for key in ("amplitude", "modes", "tau", "alpha", "seed")] == [1, 14, 3, 2, 0]
    assert "cos" in forces["formula"]


def test_the_file_holds_the_solutions(generated):
    u, converged = respond(IMAGES[1], "q2-5", PLAN.coefficients())
    assert converged.all()
    with h5py.File(generated) as file:
        np.testing.assert_array_equal(file["displacement"][1], u.astype(np.float32))  # pyright: ignore
        assert np.isnan(file["displacement"][0, 6:]).all()  # pyright: ignore
        assert np.isfinite(file["displacement"][0, :6]).all()  # pyright: ignore


def test_systems(generated):
    data = mechanics(generated, "id")
    assert data.test.names == data.heldout.names == ("bitmap-001", "bitmap-011")
    assert len(data.train.names) == 10
    assert set(data.train.names) & set(data.test.names) == set()
    assert (data.train.pairs, data.test.pairs, data.heldout.pairs) == (6, 6, 1)
    assert data.train.shares_inputs
    assert data.train.y.size == data.train.x.size == 2 * (PIXELS + 1) ** 2
    for systems in (data.train, data.test, data.heldout):
        assert systems.u.dtype == systems.f.dtype == torch.float32
        assert torch.isfinite(systems.f).all()
    torch.testing.assert_close(data.train.u, data.test.u)
    np.testing.assert_allclose(data.modulus["bitmap-001"], modulus(IMAGES[1]), rtol=1e-6)


def test_values_lie_component_by_component_on_the_grid(generated):
    """The force is the field at the grid's points; the displacement vanishes on the boundary."""
    systems = mechanics(generated, "id").train
    points = systems.y.points.numpy()
    coefficients = PLAN.forces.draw(1, TRAINING)[0]
    waves = [np.where(np.arange(15) > 0, 2**0.5, 1) * np.cos(np.pi * points[:, [i]] * np.arange(15)) for i in (0, 1)]
    field = np.einsum("pk,ckl,pl->cp", waves[0], coefficients, waves[1])
    np.testing.assert_allclose(systems.u[0, 0].reshape(2, -1), field, atol=1e-5)
    boundary = ((points == 0) | (points == 1)).any(axis=1)
    assert not systems.f.reshape(10, 6, 2, -1)[..., boundary].any()
    assert systems.f.reshape(10, 6, 2, -1)[..., ~boundary].all()


def test_the_modulus_lies_as_the_image_does():
    """Column from the left, row from the bottom; no overflow of 99 * pixel in eight bits."""
    image = np.zeros((3, 3), np.uint8)
    image[0, 2] = 255
    E = modulus(image)
    assert E[2, 2] == 100
    assert E.sum() == 108


def test_stiffer_is_shorter():
    forces = ForceField().draw(3, TRAINING)
    soft, stiff = (respond(np.full((4, 4), grey, np.uint8), "q2-4", forces)[0] for grey in (0, 255))
    assert (np.abs(stiff).max(axis=(1, 2)) < 0.05 * np.abs(soft).max(axis=(1, 2))).all()


def test_elements_agree_on_a_specimen():
    forces = ForceField().draw(2, TRAINING)
    fine, _ = respond(IMAGES[0], "q2-20", forces)
    for elements, tolerance in (("q2-5", 0.06), ("q2-10", 0.02), ("q1-40", 0.02), ("p1-40", 0.03)):
        u, _ = respond(IMAGES[0], elements, forces)
        assert np.linalg.norm(u - fine) < tolerance * np.linalg.norm(fine), elements


def test_forces():
    forces = ForceField()
    assert np.square(forces.deviations).sum() == pytest.approx(1)
    assert forces.deviations[0, 0] == 0
    many = forces.draw(200, TRAINING)
    np.testing.assert_array_equal(forces.draw(3, TRAINING), many[:3])
    assert np.abs(forces.draw(3, HELDOUT) - many[:3]).max() > 0.1
    fine, coarse = (evaluate(many, np.linspace(0, 1, n)).reshape(2, 200, n, n) for n in (57, 29))
    np.testing.assert_allclose(fine[:, :, ::2, ::2], coarse, atol=1e-12)
    assert np.square(fine[..., :-1, :-1]).mean() == pytest.approx(1, rel=0.1)
    np.testing.assert_allclose(ForceField(amplitude=3).draw(2, TRAINING), 3 * many[:2])


def test_mnist_specimens_and_splits():
    specimens = mnist()
    assert specimens.images.shape == (500, 28, 28)
    assert specimens.images.max() == 255
    assert specimens.digits is not None
    np.testing.assert_array_equal(specimens.digits, np.arange(500) % 10)
    assert specimens.names[17] == "digit-7-01"
    assert len(set(specimens.names)) == 500
    tested = specimens.for_testing("id")
    assert np.bincount(specimens.digits[tested]).tolist() == [5] * 10
    assert specimens.digits[specimens.for_testing("ood")].tolist() == [9] * 50
    plan = Plan(specimens)
    assert (plan.loads, plan.heldout) == (200, 50)
    assert plan.solved().sum() == 500 * 200 + 95 * 50
    first = specimens.first(20)
    np.testing.assert_array_equal(first.for_testing("id"), np.arange(20) >= 10)


def test_the_response_is_mildly_nonlinear():
    """The documented strains, about 10 % in the median, and the distance of the linearised solution, about 5 %."""
    mesh = read_elements("q2-28")
    loads = body_forces(mesh, evaluate(ForceField().draw(8, TRAINING), np.linspace(0, 1, 57)))
    for image in mnist().images[[0, 8]]:
        body = clamped(image, mesh)
        u, _ = solve(body, loads, np.zeros_like(loads))
        F = deformation(body, u)
        green = (np.einsum("ki...,kj...->ij...", F, F) - np.eye(2)[:, :, None, None, None]) / 2
        assert 0.08 < np.median(np.sqrt(np.square(green).sum(axis=(0, 1)))) < 0.12
        small = 1e-4
        linear = solve(body, small * loads, np.zeros_like(loads))[0] / small
        assert 0.03 < np.median(np.linalg.norm(linear - u, axis=(0, 2)) / np.linalg.norm(u, axis=(0, 2))) < 0.07


def test_a_killed_run_goes_on_where_it_was(tmp_path, generated, monkeypatch):
    many = np.concatenate([IMAGES] * 5)
    plan = Plan(bitmaps(many), loads=6, elements="q2-5")
    out, parts = tmp_path / "set.h5", tmp_path / "set.h5.parts"
    run = multiprocessing.get_context("fork").Process(target=generate, args=(plan, out, 1))
    run.start()
    while run.is_alive() and len(list(parts.glob("[0-9]*.npz"))) < 3:
        time.sleep(0.005)
    run.kill()
    run.join()
    assert not out.exists()
    kept = len(list(parts.glob("[0-9]*.npz")))
    assert 3 <= kept < len(many)
    solved = []
    solve = generation.respond
    monkeypatch.setattr(generation, "respond", lambda *case: solved.append(1) or solve(*case))
    assert generate(plan, out, jobs=1) == []
    assert len(solved) == len(many) - kept
    with h5py.File(out) as file, h5py.File(generated) as whole:
        np.testing.assert_array_equal(file["displacement"][:10], whole["displacement"][:10])  # pyright: ignore
    assert [p.name for p in tmp_path.iterdir()] == ["set.h5"]


def test_a_finished_file_is_left_as_it_is(tmp_path, monkeypatch):
    out = tmp_path / "set.h5"
    plan = Plan(bitmaps(IMAGES[:2]), loads=2, elements="q1-5")
    generate(plan, out, jobs=1)
    before = out.stat().st_mtime_ns
    generate(plan, out, jobs=1)
    assert out.stat().st_mtime_ns == before
    generate(Plan(bitmaps(IMAGES[:3]), loads=2, elements="q1-5"), out, jobs=1)
    assert len(contents(out)["images"]) == 3 * PIXELS**2


def test_parts_of_another_run_are_refused(tmp_path):
    parts = tmp_path / "set.h5.parts"
    parts.mkdir()
    (parts / "plan.json").write_text("{}")
    with pytest.raises(InputError, match="parts of another run"):
        generate(PLAN, tmp_path / "set.h5", jobs=1)


@pytest.mark.parametrize(("limit", "parts"), [(1000, 0), (30_000, 12)], ids=["parts", "file"])
def test_a_full_disk(tmp_path, generated, limit, parts):
    """Files cannot grow beyond a limit that a part, or the whole file, meets. Once there is room, the run goes on."""
    out = tmp_path / "set.h5"
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, unlimited[1]))
    try:
        with pytest.raises(InputError, match="could not be written"):
            generate(PLAN, out, jobs=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert [p.name for p in tmp_path.iterdir()] == ["set.h5.parts"]
    assert len(list((tmp_path / "set.h5.parts").glob("*.npz"))) == parts
    generate(PLAN, out, jobs=1)
    assert contents(out) == contents(generated)


def test_the_dask_backend_gives_the_same(tmp_path, generated):
    distributed = pytest.importorskip("distributed")
    import joblib

    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        generate(PLAN, tmp_path / "set.h5")
    assert contents(tmp_path / "set.h5") == contents(generated)


def test_loads_that_do_not_converge_are_named_and_the_rest_is_kept(kernelmap, images, tmp_path, monkeypatch):
    draw = ForceField.draw

    def second_too_large(self, count, stream):
        return draw(self, count, stream) * np.where(np.arange(count) == 1, 1e6, 1)[:, None, None, None]

    monkeypatch.setattr(ForceField, "draw", second_too_large)
    out = tmp_path / "set.h5"
    words = ["--images", images, "--elements", "q2-5", "--loads", 4, "--specimens", 2, "--jobs", 1]
    code, said, _ = kernelmap("generate", "mechanics", "--out", out, *words)
    assert code == 0
    assert "not converged" in said
    assert "load 1 of bitmap-000, load 1 of bitmap-001. Give a smaller --amplitude" in " ".join(said.split())
    with h5py.File(out) as file:
        assert file["converged"][1].tolist() == [True, False, True, True, True]  # pyright: ignore
        assert np.isnan(file["displacement"][:, 1]).all()  # pyright: ignore
    data = mechanics(out, "id")
    assert data.train.about["left_out_loads"] == [1]
    assert data.train.pairs == 3
    assert torch.isfinite(data.train.f).all()


def test_files_that_are_no_data_sets(generated, tmp_path):
    with pytest.raises(InputError, match="bitmaps have no digits"):
        mechanics(generated, "ood")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["u"] = 1
    with pytest.raises(InputError, match="is no data set of"):
        mechanics(tmp_path / "other.h5", "id")
    generate(Plan(bitmaps(IMAGES[0]), loads=1, elements="q1-5"), tmp_path / "one.h5", jobs=1)
    with pytest.raises(InputError, match="at least 20"):
        mechanics(tmp_path / "one.h5", "id")
