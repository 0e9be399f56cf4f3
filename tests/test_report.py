"""The report: everything is on the page, nothing is fetched, nothing overflows."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel
from kernelmap.core.places import DATE, Places
from kernelmap.discovery import Discovery
from kernelmap.report import drawing, plot, render, write_report
from kernelmap.report.figures import _prediction, kernel_figure
from kernelmap.report.identifiability import _rho
from made_discoveries import (
    ABOUT,
    DIAGNOSTICS,
    FIELDS,
    DensePosterior,
    field_discovery,
    radial_discovery,
    two_input_discovery,
)


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
    # On an interval also a map and cuts.
    assert text.count("<svg") == (7 if kind == "interval" else 5)
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


def test_predictions_of_a_series_stand_at_their_dates():
    context = radial_discovery()[0].context
    for names, expected in (((DATE,), "M"), (("t",), "f")):
        dated = replace(context, places=Places(torch.arange(19000.0, 19000 + context.d)[:, None].double(), names))
        at = drawing.times(dated, np.arange(3))
        assert at is not None
        assert at.dtype.kind == expected
        assert str(at[0]).startswith("2022-01-08" if expected == "M" else "19000")
    assert drawing.times(context, np.arange(3)) is None


def test_a_local_kernel_is_drawn_around_its_points_and_is_not_empty():
    """A stencil on a plane is a dot in a white map: it is drawn from near, and beside no empty map."""
    discovery = field_discovery(FIELDS["square"])[0]
    assert np.ptp(kernel_figure(discovery).axes[0].get_xlim()) >= 0.9
    y = discovery.kernel.y
    stencil = 1e3 * (torch.cdist(y.points, y.points) == 0).double()
    local = kernel_figure(replace(discovery, kernel=Kernel(stencil, y, discovery.kernel.x)))
    assert np.ptp(local.axes[0].get_xlim()) != pytest.approx(np.ptp(kernel_figure(discovery).axes[0].get_xlim()))
    assert "classical" not in [axes.get_title() for axes in local.axes]


def test_each_of_several_inputs_has_its_panels():
    """In its own units: an input with small numbers is not unobserved for that."""
    two = two_input_discovery()
    panels = [*kernel_figure(two).axes, *_rho(two).axes]
    assert [_is_shaded(axes) for axes in panels] == [False, True, False, True]
    first, second = two.identifiability.unobserved.chunk(2)
    assert not first.any()
    assert second.any()
    assert not second.all()
    text = render(two)
    assert text.count("of rain") == text.count("of snow") == 3


def _is_shaded(axes) -> bool:
    return any(part.get_label() == "unobserved" for part in axes.collections)


def test_errors_are_in_per_cent_of_what_the_kernel_answers(radial):
    """As the error above them is: an offset of f makes no error smaller."""

    @dataclass(frozen=True)
    class Offset(DensePosterior):
        def beside_kernel(self, count, places):
            return torch.full((1, count), 100.0, dtype=torch.float64)

    made = radial.posterior
    check = replace(radial.check, heldout=replace(radial.check.heldout, F=radial.check.heldout.F + 100))
    moved = replace(check, mean=check.mean + 100)
    found = replace(radial, posterior=Offset(made.context, made.prior, made.noise), check=moved)
    ours, other = (_prediction(one, one.check).axes[1].get_ylim() for one in (found, radial))
    assert ours == pytest.approx(other)


def test_the_page_has_colours_of_its_own_in_the_dark(page):
    used = set(re.findall(r"var\(--([a-z]+)", page))
    assert {"model", "band", "ink", "classical"} <= used
    dark = page[page.index("prefers-color-scheme: dark") : page.index("* { box-sizing")]
    assert {name for name in used if f"--{name}:" in dark} == used


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
    shown = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout
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
