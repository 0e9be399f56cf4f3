"""Suggestions: against the closed form of a Gaussian posterior, and from the command line."""

import json
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import config

from kernelmap import InputError
from kernelmap.core import Context, Kernel, KernelPosterior, grids
from kernelmap.discovery.suggest import suggest
from kernelmap.io import read_candidates, read_measurements

NOISE = 0.2


@dataclass(frozen=True)
class Gaussian(KernelPosterior):
    """N(0, C) on a grid; what a posterior of a user's own has to know."""

    context: Context
    C: torch.Tensor

    @property
    def mean(self):
        return torch.zeros(1, len(self.C), dtype=torch.float64)

    @property
    def std(self):
        return self.C.diagonal().sqrt()[None]

    def sample(self, count, generator=None):
        root = torch.linalg.cholesky(self.C)
        return (torch.randn(count, len(self.C), generator=generator, dtype=torch.float64) @ root.mT)[:, None]

    def predict(self, U):
        raise NotImplementedError

    @property
    def relative_residual(self):
        return torch.tensor(NOISE, dtype=torch.float64)

    @property
    def informed_directions(self):
        return 0

    @property
    def variance_reduction(self):
        return torch.zeros_like(self.mean)


def gaussian(n: int = 12) -> Gaussian:
    y = grids.radii(1.0, n)
    C = torch.exp(-0.5 * ((y.points - y.points.mT) / 2) ** 2) * torch.linspace(1, 3, n).double()
    context = Context(torch.ones(n, 2).double(), torch.ones(1, 2).double(), y, grids.point())
    return Gaussian(context, (C + C.mT) / 2 + 0.1 * torch.eye(n).double())


def band_after(C: torch.Tensor, U: torch.Tensor) -> float:
    """1.96 times the mean standard deviation of K given noisy responses K w U."""
    gain = C @ U @ torch.linalg.inv(U.mT @ C @ U + NOISE**2 * torch.eye(U.shape[1]).double()) @ U.mT @ C
    return 1.96 * float((C - gain).diagonal().sqrt().mean())


def test_bands_are_those_of_the_closed_form():
    posterior = gaussian()
    U = torch.eye(12).double()
    found = suggest(posterior, U, 3)
    chosen = [s.candidate for s in found.suggestions]
    assert found.band == pytest.approx(1.96 * float(posterior.std.mean()))
    for k, suggestion in enumerate(found.suggestions, 1):
        assert suggestion.band == pytest.approx(band_after(posterior.C, U[:, chosen[:k]]), rel=0.06)
    each = [band_after(posterior.C, U[:, [c]]) for c in range(12)]
    assert each[chosen[0]] == pytest.approx(min(each), rel=0.02)
    best = min(band_after(posterior.C, U[:, list(p)]) for p in combinations(range(12), 3))
    assert found.suggestions[-1].band < 1.06 * best
    v = float(posterior.C[chosen[0], chosen[0]])
    assert found.suggestions[0].information == pytest.approx(0.5 * np.log(1 + v / NOISE**2), rel=0.06)


def test_what_was_measured_is_not_suggested_again():
    chosen = [s.candidate for s in suggest(gaussian(), torch.ones(12, 4).double(), 4).suggestions]
    assert sorted(chosen) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("candidates", "count", "sentence"),
    [
        (torch.ones(11, 3), 3, r"tokens of shape \(12, n\).*got \(11, 3\)"),
        (torch.full((12, 3), torch.nan), 3, "must be finite"),
        (torch.ones(12, 0), 3, "one column for each"),
        (torch.ones(12, 3), 0, "one measurement or more"),
    ],
)
def test_what_is_refused(candidates, count, sentence):
    with pytest.raises(InputError, match=sentence):
        suggest(gaussian(), candidates.double(), count)


def time_series(folder: Path, **changes) -> Path:
    rng = np.random.default_rng(0)
    t = np.datetime64("2024-01-01") + np.arange(150)
    u = np.where(np.arange(150) < 75, 0.1, 1.0) * rng.normal(size=150)
    f = np.convolve(u, np.exp(-np.arange(21) / 4))[:150]
    f[np.arange(150) % 5 > 0] = np.nan
    np.savez(folder / "mine.npz", **({"t": t, "u": u, "f": f, "radius": 20.0} | changes))
    return folder / "mine.npz"


def test_from_the_command_line(tmp_path, kernelmap, monkeypatch):
    monkeypatch.setattr(config, "jaxtyping_disable", True)
    file = time_series(tmp_path)
    code, out, err = kernelmap("suggest", file, "--count", 2, "--json", tmp_path / "next.json")
    assert code == 0, err
    told = json.loads((tmp_path / "next.json").read_text())
    assert len(told["suggestions"]) == 2
    names = [suggestion["name"] for suggestion in told["suggestions"]]
    assert all(name in out and name.startswith("2024-") for name in names)
    # The second half has ten times the input, so that it tells more of the kernel.
    assert all(np.datetime64(name) > np.datetime64("2024-03-15") for name in names)
    assert told["suggestions"][1]["band"] < told["suggestions"][0]["band"] < told["band"]


def test_candidates_are_the_places_without_f(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "jaxtyping_disable", True)
    context = read_measurements(time_series(tmp_path)).context
    kernel = Kernel(torch.ones(1, 21).double(), context.y, context.x)
    possible = read_candidates(tmp_path / "mine.npz", kernel)
    assert possible.U.shape == (21, 104)
    assert possible.places.name(0) == "2024-01-22"
    with pytest.raises(InputError, match="f was measured at every place"):
        read_candidates(time_series(tmp_path, f=np.zeros(150)), kernel)
    with pytest.raises(InputError, match=r"f must have a value for each place.*\(150,\); got \(7,\)"):
        read_candidates(time_series(tmp_path, f=np.zeros(7)), kernel)


def test_a_file_without_a_radius_is_sent_to_discover(tmp_path, kernelmap):
    entries = dict(np.load(time_series(tmp_path)))
    del entries["radius"]
    np.savez(tmp_path / "mine.npz", **entries)  # pyright: ignore
    code, _, err = kernelmap("suggest", tmp_path / "mine.npz")
    assert code == 2
    assert "give the radius" in err
