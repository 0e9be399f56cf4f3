"""What the map of kernels of one coordinate learns, and that it is calibrated on its own prior."""

import math
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch

from kernel1d_systems import SMALL, model, waves
from kernelmap.core.context import Context
from kernelmap.evaluation import calibrate
from kernelmap.io.models import load_model, save_model
from kernelmap.posterior import Kernel1dMap, Kernel1dOptions
from kernelmap.posterior.kernel1d.draws import draw_from_prior
from kernelmap.posterior.kernel1d.fit import fit
from kernelmap.posterior.kernel1d.learning import learn_odds
from kernelmap.posterior.kernel1d.prior import starting_prior
from kernelmap.problems.world import draw_system

CPU = torch.device("cpu")
ROOT = Path(__file__).parents[1]


def test_calibrated_on_draws_from_its_own_prior() -> None:
    tested = model()

    def draws() -> list[tuple[Context, torch.Tensor]]:
        return [draw_from_prior(tested.prior, draw_system(3, i, d=40).context, 0.02, seed=i) for i in range(80)]

    found = calibrate(tested, draws(), seed=0)
    assert found.coverage(0.5) == pytest.approx(0.5, abs=0.1)
    assert found.coverage(0.95) == pytest.approx(0.95, abs=0.04)


def test_learning_raises_the_odds_of_what_systems_need() -> None:
    contexts = [waves(40, seed=i, noise=0.01)[0] for i in range(6)]
    start = starting_prior(SMALL, CPU)
    learned = learn_odds(start, contexts, rounds=2)
    fits = [fit(c.U, c.F[0], c.y, start).mixture for c in contexts]
    likeliest = [mixture.features.components[int(mixture.component_weights.argmax())].odds for mixture in fits]
    best = max(set(likeliest), key=likeliest.count)
    assert learned.log_odds[best] > start.log_odds[best]
    assert float(learned.log_odds.exp().sum()) == pytest.approx(1)
    peak = math.exp(float(learned.noise.knots[learned.noise.log_density.argmax()]))
    assert 0.003 < peak < 0.03


def test_learned_components_find_kernels_like_those_of_training(tmp_path) -> None:
    """From few pairs, where the generic components do not know enough."""
    training = [waves(50, seed=i)[0] for i in range(3)]
    taught = Kernel1dMap.fit(training, 50, replace(SMALL, remainders=(0.1, 1e-3)))
    context, kernel = waves(6, seed=9, noise=0.02)
    errors = [float((m.posterior(context).mean[0] - kernel).norm() / kernel.norm()) for m in (taught, model())]
    assert errors[0] < 0.5 * errors[1]
    save_model(tmp_path, taught, {})
    loaded, _ = load_model(tmp_path)
    torch.testing.assert_close(loaded.posterior(context).mean, taught.posterior(context).mean)  # pyright: ignore


def test_every_number_of_kernel1d_has_its_origin() -> None:
    """Constants of the package, and options of the model, in the list of the card."""
    origins = (ROOT / "docs" / "kernel1d.md").read_text().split("## Where every number comes from")[1]
    code = "".join(path.read_text() for path in (ROOT / "src/kernelmap/posterior/kernel1d").glob("*.py"))
    constants = re.findall(r"^([A-Z][A-Z_]+)(?:, [A-Z_]+)* =", code, re.MULTILINE)
    options = [field.name for field in fields(Kernel1dOptions) if field.name not in ("learned_like", "rounds")]
    assert len(constants) > 15
    assert [name for name in (*constants, *options) if f"`{name}`" not in origins] == []
