"""The report: everything is on the page, nothing is fetched, nothing overflows."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap import Context, grids
from kernelmap.core.errors import InputError
from kernelmap.core.metrics import operator_error
from kernelmap.core.posterior import KernelPosterior, Prediction
from kernelmap.discovery import Check, Diagnostic, Discovery
from kernelmap.discovery.identifiability import identifiability_of, normal_spectrum
from kernelmap.estimators import dartr
from kernelmap.report import plot, render, write_report

ABOUT = {
    "model": "radial",
    "model_sha256": "a1" * 32,
    "data_sha256": "b2" * 32,
    "command": "kernelmap discover measurements/from-the-laboratory/2025-03-14/run-07.h5 --model radial --out results",
    "version": "0.2.0",
    "commit": None,
    "data_file": "measurements/from-the-laboratory/2025-03-14/run-07.h5",
}
DIAGNOSTICS = (
    Diagnostic(
        "The residual is <b>3 times</b> the noise & more.",
        "The system may not be linear in its kernel, or f was measured elsewhere.",
        "Check the units of u and f, then run `kernelmap check` on the file.",
    ),
    Diagnostic("Only 12 pairs were given.", "The file holds one short run.", "Measure at more places."),
)


@dataclass(frozen=True)
class DensePosterior(KernelPosterior):
    """Rows K(x, .) ~ N(0, prior), conditioned on the pairs by the textbook formulas, with noise of a known size."""

    context: Context
    prior: Float[Tensor, "N N"]
    noise: float

    @property
    def gain(self) -> Float[Tensor, "d N"]:
        weighted = self.context.y.value_weights[:, None] * self.context.U
        gram = weighted.mT @ self.prior @ weighted + self.noise**2 * torch.eye(self.context.d, dtype=torch.float64)
        return torch.linalg.solve(gram, weighted.mT @ self.prior)

    @property
    def covariance(self) -> Float[Tensor, "N N"]:
        weighted = self.context.y.value_weights[:, None] * self.context.U
        return self.prior - self.prior @ weighted @ self.gain

    @property
    def mean(self) -> Float[Tensor, "M N"]:
        return self.context.F @ self.gain

    @property
    def std(self) -> Float[Tensor, "M N"]:
        return self.covariance.diagonal().clamp(min=0).sqrt().expand(self.context.x.size, -1)

    def predict(self, U: Float[Tensor, "N n"]) -> Prediction:
        weighted = self.context.y.value_weights[:, None] * U
        spread = torch.einsum("kn,kl,ln->n", weighted, self.covariance, weighted).clamp(min=0)
        mean = self.kernel.apply(U)
        return Prediction(mean, (spread + self.noise**2).sqrt().expand_as(mean))

    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count M N"]:
        return self.mean.expand(count, -1, -1)

    @property
    def relative_residual(self) -> Tensor:
        return torch.tensor(self.noise) / self.context.F.square().mean().sqrt()

    @property
    def informed_directions(self) -> int:
        spectrum = normal_spectrum(self.context)[1]
        return int((spectrum > 4e-4 * spectrum[0]).sum())

    @property
    def variance_reduction(self) -> Float[Tensor, "M N"]:
        return (1 - self.std.square() / self.prior.diagonal()).clamp(0, 1)


def discovery_of(U: Tensor, truth: Tensor, prior: Tensor, y: grids.Grid, x: grids.Grid) -> Discovery:
    """F = K w U with 2 % noise; every fifth pair is kept back."""
    clean = (truth * y.value_weights) @ U
    noise = 0.02 * float(clean.square().mean().sqrt())
    F = clean + noise * torch.randn(clean.shape, generator=torch.Generator().manual_seed(1), dtype=clean.dtype)
    kept = torch.arange(U.shape[1]) % 5 == 0
    context, heldout = Context(U[:, ~kept], F[:, ~kept], y, x), Context(U[:, kept], F[:, kept], y, x)
    posterior, classical = DensePosterior(context, prior, noise), dartr(context)
    mean, std = posterior.predict(heldout.U)
    residual = (mean - heldout.F) / std
    check = Check(
        heldout,
        mean,
        std,
        error=float(operator_error(mean, heldout.F, x)),
        coverage=float((residual.abs() < 1.96).double().mean()),
        rms_standardised_residual=float(residual.square().mean().sqrt()),
        classical_error=float(operator_error(classical.kernel.apply(heldout.U), heldout.F, x)),
    )
    return Discovery(
        kernel=posterior.kernel,
        std=posterior.std,
        posterior=posterior,
        context=context,
        check=check,
        classical=classical,
        identifiability=identifiability_of(context, posterior),
        diagnostics=(),
        about=ABOUT,
    )


def radial_discovery() -> tuple[Discovery, Tensor]:
    """Inputs that die out towards large r, so that a part of the kernel stays unobserved."""
    y = grids.radii(0.1, 110)
    r = y.points[:, 0]
    frequencies = torch.linspace(0.3, 5, 80, dtype=torch.float64)
    U = (torch.cos(r[:, None] * frequencies) - 1) * torch.exp(-((r[:, None] / 5.5) ** 4))
    truth = (torch.exp(-0.4 * r) * torch.sin(2 * r))[None]
    envelope = torch.exp(-0.15 * r)
    prior = envelope[:, None] * envelope * torch.exp(-((r[:, None] - r) ** 2) / 0.72)
    return discovery_of(U, truth, prior, y, grids.point()), truth


def field_discovery(grid: grids.Grid) -> tuple[Discovery, Tensor]:
    """A smoothing kernel between the points of a grid, of each component by itself."""
    distance = torch.cdist(grid.points, grid.points)
    U = torch.randn(grid.size, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    each = torch.eye(grid.components, dtype=torch.float64)
    truth, prior = (torch.kron(each, torch.exp(-((distance / scale) ** 2))) for scale in (0.3, 0.25))
    return discovery_of(U, truth, prior, grid, grid), truth


FIELDS = {
    "interval": grids.from_points(torch.linspace(0, 1, 30)),
    "square": grids.rectangle(9),
    "vector": grids.rectangle(5).with_components(2),
    "cube": grids.rectangle(4, dim=3),
}


@pytest.fixture(scope="module")
def radial() -> Discovery:
    return radial_discovery()[0]


@pytest.fixture(scope="module")
def page(radial) -> str:
    return render(replace(radial, diagnostics=DIAGNOSTICS))


def test_all_figures_are_there(page):
    assert page.count("<svg") == page.count("</svg>") == page.count("<figcaption>") == 5
    assert page.count('role="img" aria-label="') == 5


def test_nothing_is_fetched(page):
    without_namespaces = re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert "http://" not in without_namespaces
    assert "https://" not in without_namespaces
    assert "<script" not in page
    assert not re.search(r'\b(src|href)="(?!#|data:)', page)
    assert not re.search(r"url\((?!#)|@import", page)


def test_ids_are_unique_and_found(page):
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', page)) <= set(ids)


def test_text_is_escaped(page):
    assert "<b>" not in page
    assert "The residual is &lt;b&gt;3 times&lt;/b&gt; the noise &amp; more." in page
    assert "No diagnostics" not in page
    for diagnostic in DIAGNOSTICS:
        for text in (diagnostic.seen, diagnostic.cause, diagnostic.remedy):
            assert html.escape(text, quote=False) in page


def test_that_there_is_nothing_to_warn_of_is_said_aloud(radial):
    assert "Nothing to warn of." in render(radial)


def test_the_way_to_repeat_it_is_told(page):
    for key in ("model_sha256", "data_sha256", "command", "version", "data_file"):
        assert ABOUT[key] in page
    assert "Data file" in page


def test_headings_go_down_one_by_one(page):
    levels = [int(level) for level in re.findall(r"<h([1-6])", page)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))


def test_numbers_are_told_as_one_would_say_them(radial):
    exact = replace(radial.posterior, noise=0.0)
    text = render(replace(radial, posterior=exact, check=replace(radial.check, error=0.01234, coverage=1.0)))
    for number in ("1.23\xa0%", "100\xa0%", "0\xa0%"):
        assert f"<dd>{number}</dd>" in text


def test_the_same_discovery_gives_the_same_page(radial, page):
    assert render(replace(radial, diagnostics=DIAGNOSTICS)) == page


def test_without_held_out_pairs_there_is_no_prediction(radial):
    text = render(replace(radial, check=None))
    assert text.count("<svg") == 4
    assert "not measured" in text


@pytest.mark.parametrize("kind", FIELDS)
def test_kernels_between_fields_are_drawn(kind):
    discovery, truth = field_discovery(FIELDS[kind])
    text = render(discovery, truth=truth)
    assert text.count("<svg") == 5
    # Three rows of maps on a square: discovered, classical, truth and band.
    maps = text.split("</svg>")[0].count("data:image/png")
    assert maps >= 12 if FIELDS[kind].dim == 2 else maps == 0


def test_a_page_is_written_whole_or_not_at_all(tmp_path, radial, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def half(self: Path, text: str, **_: str) -> None:
        self.write_bytes(text[: len(text) // 2].encode())
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", half)
        with pytest.raises(InputError, match="no space left"):
            write_report(radial, path)
    assert path.read_text() == "old"
    write_report(radial, path)
    assert path.read_text(encoding="utf-8") == render(radial)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_kernel_is_plotted_by_suffix(tmp_path, radial, suffix, start):
    plot(radial, tmp_path / f"kernel.{suffix}", truth=radial_discovery()[1])
    assert (tmp_path / f"kernel.{suffix}").read_bytes().startswith(start)


def test_another_suffix_is_refused(tmp_path, radial):
    with pytest.raises(InputError, match=r"\.png, \.svg or \.pdf"):
        plot(radial, tmp_path / "kernel.gif")
    assert not list(tmp_path.iterdir())


MEASURE = """
<script>
addEventListener("load", () => {
  const found = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, root = page.documentElement
    const right = [...page.querySelectorAll("body *:not(svg *)")].map(e => e.getBoundingClientRect().right)
    const cut = [...page.querySelectorAll("td, th, pre, dd, dt")].filter(e => e.scrollWidth > e.clientWidth + 1)
    return {
      client: root.clientWidth, scroll: root.scrollWidth, right: Math.max(...right), cut: cut.length,
      figures: [...page.querySelectorAll("svg")].map(e => e.getBoundingClientRect()),
    }
  })
  document.body.dataset.found = JSON.stringify(found)
})
</script>
"""


def measured_in_browser(page: str, widths: tuple[int, ...], folder) -> list[dict]:
    """Sizes of the page in frames of these widths: a browser's own window cannot be as narrow as a phone."""
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next((path for path in map(shutil.which, names) if path), None)
    if browser is None:
        pytest.skip(f"no browser on this machine: looked for {', '.join(names)}")
    frames = [
        f'<iframe style="width:{width}px;height:2000px;border:0" srcdoc="{html.escape(page)}"></iframe>'
        for width in widths
    ]
    host = folder / "host.html"
    host.write_text(f"<!doctype html><meta charset=utf-8><body>{''.join(frames)}{MEASURE}", encoding="utf-8")
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --virtual-time-budget=3000 --window-size=1500,2000 --dump-dom"
    )
    command = [browser, *flags.split(), f"--user-data-dir={folder / 'profile'}", host.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'data-found="([^"]*)"', shown)
    assert found, "the page was not measured"
    return json.loads(html.unescape(found[1]))


@pytest.mark.parametrize("kind", ["radial", "square"])
def test_nothing_overflows_in_a_browser(tmp_path, kind):
    discovery = (radial_discovery() if kind == "radial" else field_discovery(FIELDS[kind]))[0]
    widths = (360, 1400)
    for width, found in zip(
        widths, measured_in_browser(render(replace(discovery, diagnostics=DIAGNOSTICS)), widths, tmp_path), strict=True
    ):
        assert width - 20 <= found["client"] <= width
        assert found["scroll"] <= found["client"]
        assert found["right"] <= found["client"]
        assert found["cut"] == 0
        assert len(found["figures"]) == 5
        assert all(100 < box["width"] < width and box["height"] > 100 for box in found["figures"])
