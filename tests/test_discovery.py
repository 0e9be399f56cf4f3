"""`discover`, from Python and from the command line, on files a user would write."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import h5py
import numpy as np
import pytest
import torch
from scipy.io import savemat

from kernel1d_systems import model as kernel1d
from kernel1d_systems import waves
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.kernel import Kernel
from kernelmap.core.metrics import coverage, exploration_measure, kernel_error, relative_difference
from kernelmap.core.systems import strided_draws
from kernelmap.discovery.check import check_heldout
from kernelmap.discovery.discover import discover
from kernelmap.discovery.discovery import Discovery
from kernelmap.io.measurements import read_measurements
from kernelmap.io.models import load_model
from kernelmap.problems.radial import RadialKernel, locations, radial, radial_systems, two_waves
from kernelmap.report import plot, write_report


@pytest.fixture(scope="module")
def model():
    return load_model("radial")[0].double()


def unseen(system: str = "ood1", d: int = 100, noise: float = 0.0) -> tuple[Context, torch.Tensor]:
    """Pairs of a test system, and its true kernel."""
    systems = radial("sine").test.select([system])
    assert systems.kernels is not None
    batch = systems.with_noise(noise, seed=1).batch(strided_draws(systems.pairs, d)[:1], torch.tensor([0]))
    return batch[0, 0], systems.kernels[0]


@pytest.fixture(scope="module")
def known(model) -> Callable[[str, float], Discovery]:
    """What is found of 100 pairs of a test system with so much noise, once for all tests."""

    @cache
    def of(system: str, noise: float = 0.0) -> Discovery:
        return discover(model, unseen(system, noise=noise)[0])

    return of


@pytest.mark.parametrize("system", ["id", "ood1", "ood2"])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_kernel_is_right_and_the_band_covers_it(known, system, noise):
    context, truth = unseen(system, noise=noise)
    found = known(system, noise)
    rho = exploration_measure(context.U.mT, context.y)
    errors = [float(kernel_error(k.values, truth, rho, context.y)) for k in (found.kernel, found.classical.kernel)]
    assert errors[0] < (0.06 if noise == 0 else 0.2)
    assert noise > 0 or errors[0] < 0.5 * errors[1]
    assert float(coverage(found.kernel.values, found.std, truth, rho, context.y)) > 0.6
    # Without noise, the residual is the quadrature's error at the jumps of the inputs.
    assert abs(found.noise - noise) < 0.03
    assert found.check is not None
    assert found.check.error < 2 * noise + 0.1


def test_the_check_does_not_see_the_pairs_it_keeps_back():
    """Their responses may be any: what is predicted of them stays the same."""
    context, _ = waves(60, noise=0.05)
    before = check_heldout(kernel1d(), context)
    assert before is not None
    kept = (context.U[:, :, None] == before.heldout.U[:, None]).all(dim=0).any(dim=1)
    after = check_heldout(kernel1d(), replace(context, F=torch.where(kept, 3 - 2 * context.F, context.F)))
    assert after is not None
    assert int(kept.sum()) == before.heldout.d == 12
    assert torch.equal(after.heldout.F, 3 - 2 * before.heldout.F)
    assert torch.equal(after.mean, before.mean)
    assert torch.equal(after.std, before.std)


def test_predictions_of_new_inputs(known):
    rest, truth = unseen(d=302)
    mean, std = known("ood1").predict(rest.U)
    exact = (truth * rest.y.weights) @ rest.U
    assert relative_difference(mean, exact) < 0.06
    assert float(((mean - rest.F).abs() < 1.96 * std).double().mean()) > 0.85
    with pytest.raises(InputError, match=r"finite with shape \(880, n\)"):
        known("ood1").predict(rest.U[:-1])


def test_shuffled_pairs_give_the_same():
    context, _ = waves(60, noise=0.05)
    shuffled = context.select(torch.randperm(60, generator=torch.Generator().manual_seed(0)))
    kernels = [discover(kernel1d(), each).kernel.values for each in (shuffled, context)]
    assert relative_difference(*kernels) < 1e-9


def test_no_diagnostics_on_good_data(model):
    assert discover(model, unseen("ood2", d=150)[0]).diagnostics == ()


def test_few_pairs_are_named(model):
    found = discover(model, unseen(d=12)[0])
    assert found.check is None
    assert any("Only 12 pairs" in diagnostic.seen for diagnostic in found.diagnostics)


def test_pairs_that_do_not_belong_together_are_named(model):
    context, _ = unseen("ood2", d=100)
    mixed = Context(context.U, context.F.flip(-1).contiguous(), context.y, context.x)
    found = discover(model, mixed)
    assert found.check is not None
    assert found.check.error > 0.3
    assert found.diagnostics or found.noise > 0.1


def test_inputs_that_see_little_are_named(model):
    context, _ = unseen("ood2", d=100)
    dim = context.U * (context.y.points < 2)
    found = discover(model, Context(dim, context.F, context.y, context.x))
    assert any("hardly see the kernel" in diagnostic.seen for diagnostic in found.diagnostics)
    assert found.identifiability.unobserved.float().mean() > 0.5
    assert found.identifiability.variance_reduction[0, -200:].max() < 0.9


def test_what_discover_refuses(model):
    context, _ = unseen()
    with pytest.raises(InputError, match="nothing to discover"):
        discover(model, Context(context.U, 0 * context.F, context.y, context.x))
    with pytest.raises(InputError, match="tokens of u are zero"):
        discover(model, Context(0 * context.U, context.F, context.y, context.x))


def test_any_unit_of_length():
    context, _ = waves(60, noise=0.05)
    metres = Context(context.U, context.F, Grid(1000 * context.y.points, 1000 * context.y.weights), context.x)
    kernels = [1000 * discover(kernel1d(), metres).kernel.values, discover(kernel1d(), context).kernel.values]
    assert relative_difference(*kernels) < 1e-6


def test_a_family_nobody_named(model):
    """A kernel unlike all training and test families."""
    kernel = RadialKernel(lambda r: np.where(r < 3, 1 - r / 3, 0) * np.exp(-0.2 * r), 11.0, breakpoints=(3.0,))
    systems = radial_systems({"tent": kernel}, two_waves("released"))
    batch = systems.batch(strided_draws(systems.pairs, 100)[:1], torch.tensor([0]))
    context = Context(batch.U[0, 0], batch.F[0, 0], batch.y, batch.x)
    found = discover(model, context)
    assert systems.kernels is not None
    rho = exploration_measure(context.U.mT, context.y)
    assert float(kernel_error(found.kernel.values, systems.kernels[0], rho, context.y)) < 0.05
    assert float(coverage(found.kernel.values, found.std, systems.kernels[0], rho, context.y)) > 0.8


def test_save_and_summary(known, tmp_path):
    found = replace(known("ood1"), about={"model": "radial"})
    found.save(tmp_path / "found.h5")
    plot(found, tmp_path / "found.png")
    write_report(found, tmp_path / "found.html")
    assert Kernel.load(tmp_path / "found.h5").values.shape == (1, 880)
    assert (tmp_path / "found.html").read_text().count("<svg") == 5
    with h5py.File(tmp_path / "found.h5") as file:
        np.testing.assert_allclose(np.asarray(file["std"]), found.std)
        assert file.attrs["pairs"] == 100
    assert found.check is not None
    assert json.loads(json.dumps(found.check.summary()))["pairs"] == 20


def test_the_command_on_a_users_file(tmp_path, kernelmap):
    """Two noisy inputs on a mesh, written by the three-line recipe in any format, pairs all over the place."""
    systems = radial("sine").test.select(["ood2"]).with_noise(0.01, seed=2)
    x = locations("released", 0.0125)
    u, f = two_waves("released").functions(x), systems.f[0, :, 0].numpy().reshape(2, -1).copy()
    measured = np.zeros_like(f, dtype=bool)
    measured[:, ::30] = True
    f[~measured] = np.nan
    arrays = {"x": x, "u": u, "f": f, "radius": 11.0, "outside": "zero"}
    paths = [tmp_path / f"mine.{suffix}" for suffix in ("npz", "mat", "h5")]
    np.savez(paths[0], **arrays)
    savemat(paths[1], arrays)
    with h5py.File(path := paths[2], "w") as file:
        for name, value in arrays.items():
            file[name] = value
    contexts = [read_measurements(path).context for path in paths]
    assert all(torch.equal(c.U, contexts[0].U) and torch.equal(c.F, contexts[0].F) for c in contexts)
    out, numbers = tmp_path / "out", tmp_path / "found.json"
    code, printed, err = kernelmap("discover", path, "--out", out, "--json", numbers)
    assert code == 0, err
    result = json.loads(numbers.read_text())
    assert systems.kernels is not None
    rho = exploration_measure(systems.u[0], systems.y)
    kernel, std = (torch.tensor(result[name]).double() for name in ("kernel", "std"))
    assert float(kernel_error(kernel, systems.kernels[0], rho, systems.y)) < 0.1
    assert float(coverage(kernel, std, systems.kernels[0], rho, systems.y)) > 0.8
    assert len(result["model_sha256"]) == len(result["data_sha256"]) == 64
    assert {path.name for path in out.iterdir()} == {
        "report.html",
        "discovery.h5",
        "kernel.png",
        "kernel.csv",
        "manifest.json",
    }
    assert "pairs" in printed
