"""A map and a problem from outside the package, one file each, used by the command line as if they were ours."""

import json
from pathlib import Path

import numpy as np
import pytest

from processes import Done, python

MAP = '''
"""Ridge regression with a learned amplitude: a Gaussian posterior for every row."""

from dataclasses import dataclass

import torch
from torch import nn

from kernelmap.core import Context, KernelPosterior, Prediction
from kernelmap.maps import ProbabilisticMap, register


@dataclass(frozen=True)
class RidgeOptions:
    """Attributes:
        ridge: variance of the noise relative to that of f.
    """

    ridge: float = 1e-3


@dataclass(frozen=True)
class RidgePosterior(KernelPosterior):
    context: Context
    alpha: torch.Tensor
    ridge: float

    def _gain(self):
        A = self.context.y.value_weights[:, None] * self.context.U
        S = self.alpha * A.mT @ A
        return torch.linalg.solve(S + self.ridge * torch.eye(self.context.d, dtype=S.dtype), self.alpha * A.mT), A

    @property
    def mean(self):
        return self.context.F @ self._gain()[0]

    @property
    def std(self):
        gain, A = self._gain()
        variance = self.alpha * (1 - (A * gain.mT).sum(dim=-1))
        return variance.clamp(min=0).sqrt()[..., None, :].expand_as(self.mean)

    def predict(self, U):
        mean = self.kernel.apply(U)
        return Prediction(mean, torch.full_like(mean, self.ridge**0.5) * self.context.F.square().mean().sqrt())

    def sample(self, count, generator=None):
        return self.mean + self.std * torch.randn(count, *self.mean.shape, generator=generator, dtype=self.mean.dtype)

    @property
    def relative_residual(self):
        return torch.tensor(self.ridge**0.5)

    @property
    def informed_directions(self):
        return self.context.d

    @property
    def variance_reduction(self):
        return (1 - self.std.square() / self.alpha).clamp(0, 1)


@register("ridge")
class Ridge(ProbabilisticMap):
    """Rows K(x, .) ~ N(0, alpha)."""

    Options = RidgeOptions

    def __init__(self, shape, options):
        super().__init__(shape, options)
        self.log_alpha = nn.Parameter(torch.zeros(()))

    def posterior(self, context):
        return RidgePosterior(context, self.log_alpha.exp(), self.options.ridge)
'''

PROBLEM = '''
"""Smoothing on a line: f(x) = ∫ exp(-|x - y| / width) u(y) dy."""

from dataclasses import dataclass

import torch

from kernelmap.core import SystemSet, grids
from kernelmap.problems import Problem, TestData, TrainingData, register


@register("smoothing")
@dataclass(frozen=True)
class Smoothing(Problem):
    """Smoothing on a line.

    Attributes:
        resolution: of the line.
    """

    d = 10

    resolution: int = 12

    def systems(self, widths):
        line = grids.from_points(torch.linspace(0, 1, self.resolution))
        u = torch.randn(len(widths), 40, self.resolution, generator=torch.Generator().manual_seed(0)).double()
        K = torch.stack([torch.exp(-torch.cdist(line.points, line.points) / width) for width in widths])
        f = torch.einsum("smk,k,sjk->sjm", K, line.weights, u)
        return SystemSet(tuple(f"width-{w}" for w in widths), u, f, line, line, K, {"problem": "smoothing"})

    def training(self):
        return TrainingData(self.systems((0.1, 0.2, 0.4)), about={"problem": "smoothing"})

    def test(self):
        return TestData(self.systems((0.3,)))
'''


@pytest.fixture(scope="module")
def outside(tmp_path_factory) -> Path:
    """A directory as pip leaves it: two modules, and the metadata that declares their entry points."""
    place = tmp_path_factory.mktemp("site")
    (place / "ridge_map.py").write_text(MAP)
    (place / "smoothing_problem.py").write_text(PROBLEM)
    metadata = place / "toys-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[kernelmap.maps]\nridge = ridge_map\n\n[kernelmap.problems]\nsmoothing = smoothing_problem\n"
    )
    return place


COMMANDS = """
import contextlib, io, json, sys
from kernelmap.cli.main import run

def done(words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = run(words)
        except SystemExit as stop:
            code = stop.code
    return code or 0, out.getvalue(), err.getvalue()

json.dump([done(words) for words in json.loads(sys.argv[1])], sys.stdout)
"""


def run(outside: Path, *commands: list[object]) -> list[Done]:
    """Commands one after the other, in a process that finds the packages of the directory."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    done = python("-c", COMMANDS, words, cwd=outside)
    assert done.returncode == 0, done.stderr
    return [Done(*each) for each in json.loads(done.stdout)]


def test_generate_train_evaluate_and_discover(outside, tmp_path):
    y = np.linspace(0, 1, 9)
    weights, U = np.full(9, 1 / 8), np.random.default_rng(0).standard_normal((9, 30))
    F = np.exp(-np.abs(y[:, None] - y) / 0.3) * weights @ U
    np.savez(tmp_path / "mine.npz", U=U, F=F, y=y, x=y, weights=weights)
    words = "--map ridge --ridge 1e-4 --resolution 9 --d 8 --epochs 3 --every 1 --precision float64"
    model, numbers = tmp_path / "model", tmp_path / "errors.json"
    commands = run(
        outside,
        ["generate", "smoothing", "--out", tmp_path / "data.h5", "--resolution", 9],
        ["train", "smoothing", *words.split(), "--out", model],
        ["evaluate", model, "smoothing", "--resolution", 9, "--json", numbers],
        ["discover", tmp_path / "mine.npz", "--model", model, "--out", tmp_path / "out"],
    )
    assert [done.returncode for done in commands] == [0] * 4, commands
    assert "3 training systems" in commands[0].stdout
    config = json.loads((model / "config.json").read_text())
    assert (config["map"], config["options"]) == ("ridge", {"ridge": 1e-4})
    assert 0 < json.loads(numbers.read_text())["systems"]["width-0.3"]["kernel_error"] < 0.6
    assert (tmp_path / "out" / "report.html").exists()


def test_they_are_named_beside_ours(outside):
    start = ["train", "smoothing", "--map"]
    shown, ridge, nao = run(
        outside, [*start, "mine", "--out", "x"], [*start, "ridge", "--help"], [*start, "nao", "--help"]
    )
    assert shown.returncode == 2
    assert "ridge" in shown.stderr
    assert "nao" in shown.stderr
    assert "--ridge" in ridge.stdout
    assert "--dk" not in ridge.stdout
    assert "--dk" in nao.stdout


def test_a_broken_map_does_not_stop_the_others_and_an_option_of_two_groups_is_named(outside):
    (outside / "ridge_map.py").write_text("import nothing_of_this_name")
    (outside / "smoothing_problem.py").write_text(PROBLEM.replace("resolution", "points"))
    try:
        broken, twice = run(
            outside, ["train", "radial", "--map", "mine", "--out", "x"], ["train", "smoothing", "--out", "x"]
        )
    finally:
        (outside / "ridge_map.py").write_text(MAP)
        (outside / "smoothing_problem.py").write_text(PROBLEM)
    assert broken.returncode == twice.returncode == 2
    assert "cannot be used" in broken.stderr
    assert "there are afno" in broken.stderr
    assert "Smoothing and Recipe both have an option 'points'" in twice.stderr
