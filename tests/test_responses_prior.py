"""The prior of responses in time: their tails, and single reservoirs."""

import numpy as np
import pytest
import torch

from kernel1d_systems import model
from kernelmap import load_model
from kernelmap.core import Context
from kernelmap.posterior import Kernel1dMap
from kernelmap.posterior.kernel1d.measured import fit as measured
from kernelmap.posterior.kernel1d.measured import responses
from kernelmap.posterior.kernel1d.measured.responses import responses_prior
from measured_series import context_of, kernel, posterior, series


def off(found) -> tuple[np.ndarray, np.ndarray]:
    """Error and standard deviation of an exponential, at its lags."""
    return found.mean[0].numpy() - kernel(0), found.std[0].numpy()


def test_the_prior_is_one_of_probabilities_that_keeps_those_before():
    before = model().prior
    after = responses_prior(before)
    assert float(after.log_odds.logsumexp(dim=0)) == pytest.approx(float(before.log_odds.logsumexp(dim=0)))
    assert len(after.log_odds) == len(before.log_odds) + 1
    kept = torch.cat([after.log_odds[: before.first_edge], after.log_odds[after.first_edge :]])
    torch.testing.assert_close(kept - kept[0], before.log_odds - before.log_odds[0])
    t = torch.linspace(0, 1, 40, dtype=torch.float64)
    assert all(c.odds < len(after.log_odds) for c in after.features(t, 0.01).components)


def test_one_reservoir_is_likely(tmp_path, monkeypatch):
    """An exponential between the rates of the general prior, by the shipped model."""
    shipped, _ = load_model("kernel1d")
    assert isinstance(shipped, Kernel1dMap)
    context = context_of(series(), tmp_path)
    context = Context(context.U, context.F, context.y, context.x, operator="convolution")
    own = shipped.posterior(context)
    monkeypatch.setattr(measured, "responses_prior", lambda prior: prior)
    general = shipped.posterior(context)
    assert own.log_evidence > general.log_evidence + 5
    assert np.linalg.norm(off(own)[0]) < np.linalg.norm(off(general)[0])


def test_no_tail_is_known_to_be_zero(tmp_path, monkeypatch):
    """Whatever the rate of an exponential, its band at the end is that of the smooth part beside it."""
    context = context_of(series(), tmp_path)
    last = off(posterior(context))[1][-8:].mean()
    monkeypatch.setattr(responses, "TAIL", 0.0)
    assert last > 1.5 * off(posterior(context))[1][-8:].mean()


def test_radial_kernels_have_the_prior_that_was_learned(tmp_path, monkeypatch):
    def refuse(prior):
        raise AssertionError

    monkeypatch.setattr(measured, "responses_prior", refuse)
    context = context_of(series(80), tmp_path)
    assert torch.isfinite(posterior(Context(context.U, context.F, context.y, context.x)).mean).all()
    with pytest.raises(AssertionError):
        posterior(context)


def test_a_model_with_learned_components_takes_responses_too(tmp_path):
    shipped, _ = load_model("radial")
    assert isinstance(shipped, Kernel1dMap)
    assert shipped.prior.learned is not None
    error, std = off(shipped.posterior(context_of(series(), tmp_path)))
    assert np.linalg.norm(error) < 0.2 * np.linalg.norm(kernel(0))
    assert np.isfinite(std).all()
