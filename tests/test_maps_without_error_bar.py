"""`discover` with every map: which pairs, which scale, and the split-conformal band of predictions."""

import json
from math import inf

import numpy as np
import pytest
import torch

from contract import EXAMPLES, FACTS, build
from kernelmap import Context, InputError, discover, load_discovery, load_model
from kernelmap.core.domain import ContextShape
from kernelmap.core.grids import from_points, point
from kernelmap.core.kernel import Kernel
from kernelmap.core.metrics import exploration_measure, kernel_error, relative_difference
from kernelmap.core.systems import strided_draws
from kernelmap.discovery.point import point_diagnostics, split
from kernelmap.maps import KernelMap, NoOptions
from kernelmap.maps.conformal import conformal, conformal_quantile
from kernelmap.problems.radial import radial
from kernelmap.report import render

Y = from_points(np.linspace(0, 1, 9))


def pairs(d: int, noise: float = 0.1, seed: int = 0) -> Context:
    generator = torch.Generator().manual_seed(seed)
    U = torch.randn(9, d, generator=generator, dtype=torch.float64)
    f = (torch.exp(-Y.points[:, 0]) * Y.weights) @ U
    return Context(U, (f + noise * torch.randn(d, generator=generator, dtype=torch.float64))[None], Y, point())


SEEN: list[Context] = []
"""What the map below was given; `discover` works on a copy of it."""


class Fixed(KernelMap):
    """A map that is tied to its d pairs, and says K(y) = exp(-y) whatever they are."""

    name = "fixed"

    def kernel(self, context: Context) -> Kernel:
        SEEN.append(context)
        return Kernel(torch.exp(-context.y.points.mT), context.y, context.x)


class Free(Fixed):
    """The same for any number of pairs."""

    tied_to_pairs = False

    def check_pairs(self, d: int) -> None: ...


def fixed(d: int, kind: type[Fixed] = Fixed) -> Fixed:
    model = kind(ContextShape.of(pairs(d)), NoOptions())
    model.u_mean.fill_(3.0)
    model.u_std.fill_(4.0)
    return model.double()


class TestQuantile:
    @pytest.mark.parametrize(("n", "rank"), [(19, 19), (20, 20), (39, 38), (99, 95), (100, 96)])
    def test_it_is_the_right_order_statistic(self, n, rank):
        scores = torch.randperm(n, generator=torch.Generator().manual_seed(0))[None].double() + 1
        assert float(conformal_quantile(scores)) == rank

    def test_it_is_infinite_with_too_few(self):
        assert float(conformal_quantile(torch.ones(1, 18, dtype=torch.float64))) == inf

    def test_the_band_covers_as_promised(self):
        """On average over 300 calibrations with 40 pairs, of a wrong kernel and noise that grows with u."""
        covered = []
        truth, wrong = (Kernel(torch.exp(-a * Y.points.mT), Y, point()) for a in (1.0, 1.3))
        for seed in range(300):
            context = pairs(90, noise=0.0, seed=seed)
            noise = 0.1 * torch.randn(90, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
            F = truth.apply(context.U) * (1 + noise)
            known, new = (Context(context.U[:, part], F[:, part], Y, point()) for part in (slice(40), slice(40, 90)))
            mean, std = conformal(wrong, known, wrong, known).predict(new.U)
            covered.append(float(((new.F - mean).abs() <= 1.96 * std).double().mean()))
        # k = 39 of n = 40: the coverage is 39/41 = 0.951 on average.
        assert 0.935 < np.mean(covered) < 0.97


class TestPairs:
    def test_a_tied_map_takes_d_of_them_as_in_training(self):
        chosen, others = split(fixed(10), 34)
        assert chosen.tolist() == strided_draws(34, 10)[0].tolist() == list(range(0, 30, 3))
        assert sorted(chosen.tolist() + others.tolist()) == list(range(34))
        found = discover(fixed(10), pairs(34))
        assert found.context.d == 10
        assert found.check is not None
        assert found.check.heldout.d == 24

    def test_too_few_are_refused(self):
        with pytest.raises(InputError, match="exactly d = 10 pairs, got 9"):
            discover(fixed(10), pairs(9))

    def test_none_to_spare_is_said(self):
        found = discover(fixed(10), pairs(10))
        assert found.check is None
        assert [one.seen for one in found.diagnostics][:2] == [
            "The kernel has no error bar.",
            "No pairs could be kept back, so that predictions have no band.",
        ]
        assert "Give 29 pairs or more" in found.diagnostics[1].remedy
        assert torch.isinf(found.predict(pairs(5).U).std).all()

    def test_few_to_spare_are_checked_without_a_band(self):
        found = discover(fixed(10), pairs(15))
        assert found.check is not None
        assert 0 < found.check.error < 1
        assert found.check.summary()["coverage"] is None
        assert any("5 pairs could be kept back" in one.seen for one in found.diagnostics)
        assert "too few for a band" in render(found)

    def test_a_free_map_uses_all_and_is_checked_on_one_in_five(self):
        found = discover(fixed(10, Free), pairs(200))
        assert found.context.d == 200
        assert found.check is not None
        assert found.check.heldout.d == 40
        assert not torch.isinf(found.predict(pairs(5).U).std).any()
        assert discover(fixed(10, Free), pairs(12)).check is None


def test_the_map_sees_u_at_the_scale_of_its_training():
    """u and f times one factor: rms of u is (3² + 4²)^½ = 5, and the kernel stays."""
    context = pairs(10)
    for scale in (1.0, 1e-6, 1e5):
        SEEN.clear()
        discover(fixed(10), Context(scale * context.U, scale * context.F, Y, point()))
        (given,) = SEEN
        assert float(given.U.square().mean().sqrt()) == pytest.approx(5.0)
        torch.testing.assert_close(given.F / given.U[:1], context.F / context.U[:1])


def test_the_check_is_not_calibrated_on_itself():
    """Each half of the pairs kept back is judged by the other: two halves that differ show it."""
    context = pairs(10 + 80, noise=0.0)
    _, others = split(fixed(10), 90)
    F = context.F.clone()
    F[:, others[::2]] += 10.0
    found = discover(fixed(10), Context(context.U, F, Y, point()))
    assert found.check is not None
    assert found.check.coverage < 0.6


def test_a_kernel_that_explains_nothing_is_named():
    context = pairs(60)
    found = discover(fixed(10), Context(context.U, context.F.flip(-1).contiguous(), Y, point()))
    assert any(
        "not explained by this kernel" in one.seen and "by their number" in one.cause for one in found.diagnostics
    )


@pytest.mark.parametrize(("outputs", "named"), [(point(), "the model radial"), (Y, "integral-posterior, trained on")])
def test_the_advice_names_what_gives_kernels_of_this_form(outputs, named):
    context = Context(pairs(30).U, torch.ones(outputs.size, 30, dtype=torch.float64), Y, outputs)
    nothing = Kernel(torch.zeros(outputs.size, Y.size, dtype=torch.float64), Y, outputs)
    model = Fixed(ContextShape.of(context), NoOptions())
    missing, *_, unexplained = point_diagnostics(model, conformal(nothing, context, nothing, None), None)
    assert named in missing.remedy
    assert named in unexplained.remedy


def test_a_batch_and_a_list_are_many():
    one, two = pairs(40), pairs(40, seed=1)
    batch = Context(torch.stack([one.U, two.U]), torch.stack([one.F, two.F]), Y, point())
    singles = [discover(fixed(10), each) for each in (one, two)]
    for found in (discover(fixed(10), batch), discover(fixed(10), [one, two])):
        assert isinstance(found, list)
        for ours, theirs in zip(found, singles, strict=True):
            torch.testing.assert_close(ours.predict(one.U).std, theirs.predict(one.U).std)
    nested = Context(batch.U[None], batch.F[None], Y, point())
    with pytest.raises(InputError, match=r"one leading dimension, got a batch of shape \(1, 2\)"):
        discover(fixed(10), nested)


def paper_pairs(system: str = "id") -> tuple[Context, torch.Tensor]:
    systems = radial("sine").test.select([system])
    assert systems.kernels is not None
    return systems.batch(strided_draws(systems.pairs, 302)[:1], torch.tensor([0]))[0, 0], systems.kernels[0]


@pytest.mark.parametrize("system", ["id", "ood1", "ood2"])
def test_the_papers_model_at_any_scale(system):
    context, truth = paper_pairs(system)
    model = load_model("nao-diverse")[0]
    found = discover(model, context)
    rho = exploration_measure(context.U.mT, context.y)
    assert float(kernel_error(found.kernel.values, truth, rho, context.y)) < 0.2
    loud = discover(model, Context(1000 * context.U, 1000 * context.F, context.y, context.x))
    assert relative_difference(loud.kernel.values, found.kernel.values) < 1e-10


def test_the_papers_model_on_the_command_line(kernelmap, tmp_path):
    context, _ = paper_pairs()
    r = context.y.points[:, 0].numpy()
    kernels = []
    for scale in (1, 1000):
        path = tmp_path / f"times{scale}.npz"
        np.savez(path, U=scale * context.U.numpy(), F=scale * context.F[0].numpy(), r=r)
        words = ["--model", "nao-diverse", "--out", tmp_path / "out", "--json", tmp_path / "found.json"]
        code, printed, err = kernelmap("discover", path, *words)
        assert code == 0, err
        assert "The kernel has no error bar" in printed
        kernels.append(np.array(json.loads((tmp_path / "found.json").read_text())["kernel"]))
    np.testing.assert_allclose(kernels[1], kernels[0], rtol=1e-9)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "The kernel has no error bar." in page
    assert "gives a kernel without an error bar" in page
    assert "95 % band, and the classical" not in page
    columns = (tmp_path / "out" / "kernel.csv").read_text().splitlines()[0]
    assert columns == "r,K"


@pytest.mark.parametrize("name", sorted(FACTS))
def test_every_registered_map_discovers(name, tmp_path):
    """On pairs of a kind that it takes: a kernel, a report, and a file that predicts the same."""
    context = EXAMPLES[min(FACTS[name].takes)](24, 1)[0]
    found = discover(build(name, context), context)
    assert found.kernel.values.shape == (context.x.size, context.y.size)
    assert torch.isfinite(found.kernel.values).all()
    assert "</html>" in render(found)
    found.save(tmp_path / "found.h5")
    for ours, theirs in zip(
        load_discovery(tmp_path / "found.h5").predict(context.U), found.predict(context.U), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-10 * float(theirs.abs().nan_to_num(posinf=0).max()))
