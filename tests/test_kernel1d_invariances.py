"""What a kernel of one coordinate does not depend on: units, the order of pairs, repeats, batches."""

import numpy as np
import pytest
import torch

from kernel1d_systems import model, waves
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.discovery import discover
from kernelmap.posterior.kernel1d.fit import averaged


def test_units_do_not_matter() -> None:
    context, _ = waves(40, noise=0.02)
    reference = model().posterior(context)
    for length, u, f in ((1e-6, 1.0, 1.0), (1e6, 1.0, 1.0), (1.0, 1e-150, 1e150), (1.0, 1e150, 1e-150)):
        y = grids.radii(length / 60, 60)
        scaled = model().posterior(Context(u * context.U, f * context.F, y, context.x))
        unit = f / u / length
        for ours, theirs in ((scaled.mean, reference.mean), (scaled.std, reference.std)):
            assert float((ours / unit - theirs).norm() / theirs.norm()) < 1e-6


def test_order_of_pairs_does_not_matter() -> None:
    context, _ = waves(30, noise=0.05)
    turned = context.select(torch.arange(29, -1, -1))
    np.testing.assert_allclose(model().posterior(turned).mean, model().posterior(context).mean, rtol=1e-6, atol=1e-9)


def test_repeated_pairs_are_averaged() -> None:
    context, _ = waves(40, noise=0.05)
    many = context.select(torch.arange(40).repeat(20))
    columns, f, repeats = averaged(many.U, many.F[0])
    assert repeats.tolist() == [20.0] * 40
    assert sorted(columns.tolist()) == list(range(40))
    assert len(f) == 40
    once, often = model().posterior(context), model().posterior(many)
    np.testing.assert_allclose(often.mean, once.mean, rtol=1e-3, atol=1e-3 * float(once.mean.abs().max()))
    np.testing.assert_allclose(often.std, once.std, rtol=1e-2)


def test_tokens_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tokens as large as memory no copy is made; parts of pairs give what all at once do."""
    context, _ = waves(50, noise=0.01)
    whole = model().posterior(context)
    for module in ("fit", "posterior"):
        monkeypatch.setattr(f"kernelmap.posterior.kernel1d.{module}.VALUES_AT_ONCE", 7 * context.y.size)
    parts = model().posterior(context)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(parts.predict(context.U).std, whole.predict(context.U).std, rtol=1e-6)


def test_batch_is_a_loop() -> None:
    first, second = waves(30, seed=1, noise=0.01)[0], waves(30, seed=2, noise=0.01)[0]
    both = Context(torch.stack([first.U, second.U]), torch.stack([first.F, second.F]), first.y, first.x)
    posterior = model().posterior(both)
    np.testing.assert_allclose(posterior.mean[1], model().posterior(second).mean)
    assert posterior.predict(both.U).mean.shape == (2, 1, 30)
    assert posterior.relative_residual.shape == (2,)


def test_discovery_of_any_units_has_no_false_alarm() -> None:
    context, _ = waves(100, noise=0.001)
    y = grids.radii(1e-9, 60)
    found = discover(model(), Context(1e100 * context.U, 1e-100 * context.F, y, context.x))
    assert not found.diagnostics
    assert 0 < found.identifiability.expected_error < 0.25
