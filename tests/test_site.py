"""The documentation as a site: built without a warning, nothing fetched from the network, every page in its search."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import nbformat
import pytest

from browser import browser, errors, until

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_every_page_is_in_it_and_is_found(site):
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} | {"index", "contributing", "changelog"}
    pages |= {f"gallery/{path.stem}" for path in (ROOT / "gallery").glob("*.py")} | {"gallery/index"}
    assert pages <= {str(path.relative_to(site).with_suffix("")) for path in site.rglob("*.html")}
    entries = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    assert pages <= {entry["location"].partition(".html")[0] or "index" for entry in entries}
    assert any("noise" in entry["text"] for entry in entries if entry["location"].startswith("time-series"))


def test_links_of_the_readme_lead_to_pages_and_formulas_stay(site):
    start = (site / "index.html").read_text()
    assert 'href="your-data.html"' in start
    assert "K(x, y) g[u](y) dy" in start


def test_public_names_are_documented(site):
    from kernelmap import __all__

    shown = set(re.findall(r'id="kernelmap\.[\w.]*?(\w+)"', (site / "api.html").read_text()))
    assert set(__all__) <= shown


def test_what_a_class_holds_is_a_list_in_the_reference(site):
    shown = (site / "api.html").read_text()
    for name in ("kernel, std", "diagnostics", "epochs"):  # of Discovery and, under Attributes, of Recipe
        assert f"<li><code>{name}</code>" in shown


def test_nothing_is_fetched_from_the_network(site):
    for path in site.rglob("*.html"):
        assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="https?://[^"]*"', path.read_text())


def test_the_well_of_the_start_page():
    found = json.loads((ROOT / "experiments" / "results" / "measurements" / "well.json").read_text())["results"]
    words = " ".join((ROOT / "README.md").read_text().split())
    assert f"{found['pairs']} levels of a well" in words
    assert f"R² {found['r2']:.2f}; {100 * found['coverage']:.0f} % of them" in words


@pytest.mark.parametrize("name", ["radial", "darcy", "mechanics"])
def test_a_gallery_page_shows_what_was_printed_and_drawn_and_can_be_taken_away(site, name):
    page = (site / "gallery" / f"{name}.html").read_text()
    assert "held-out error" in page or "expected error" in page
    figures = re.findall(rf'src="({name}-\d+-\d+\.png)"', page)
    assert figures
    assert all((site / "gallery" / figure).stat().st_size > 5000 for figure in figures)
    assert f'href="{name}.ipynb"' in page
    notebook = nbformat.read(site / "gallery" / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith("# ")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) >= 2
    assert not any(cell.outputs for cell in code)


# What the gallery's files print, which the build runs


def shown(site: Path, name: str) -> str:
    """The words of a page."""
    return unescape(re.sub("<[^>]+>", "", (site / "gallery" / f"{name}.html").read_text()))


def numbers(pattern: str, text: str) -> list[float]:
    found = re.search(pattern, text)
    assert found, text
    return [float(group) for group in found.groups()]


def test_the_brain_responds_after_six_seconds_and_nitime_predicts_no_better(site):
    said = shown(site, "hemodynamic")
    lag, height, band = numbers(r"largest (\d+) s after an event: ([\d.]+) ± ([\d.]+)", said)
    assert 4 <= lag <= 8
    assert height > band > 0
    ours, theirs, inside = numbers(r"kernelmap ([\d.]+), nitime's FIR ([\d.]+); inside our 95 % band ([\d.]+)%", said)
    assert ours >= theirs > 0.2
    assert inside > 90


def test_a_nonlocal_bar_from_noisy_displacements(site):
    said = shown(site, "waves")
    (inside,) = numbers(r"; (\d+)% of K inside", said)
    error, _ = numbers(r"error of K ([\d.]+)%; of the classical estimate \(DARTR\) ([\d.]+)%", said)
    assert inside > 90
    assert error < 10


def test_opinions_of_a_group_asked_ten_times_say_what_others_will_agree_on(site):
    said = shown(site, "particles")
    (inside,) = numbers(r"; (\d+)% of K inside", said)
    ours, _, squares = numbers(r"error of K ([\d.]+)%; of DARTR ([\d.]+)%; of least squares ([\d.]+)%", said)
    assert inside > 90
    assert ours < min(5, squares)
    for moved, missed in re.findall(r"move by ([\d.]+); at the end we miss them by ([\d.]+)", said):
        assert float(missed) < 0.05 * float(moved)


# In a browser


@pytest.fixture(scope="module")
def address(site) -> Iterator[str]:
    server = ThreadingHTTPServer(("localhost", 0), partial(_Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def test_the_search_finds_offset_in_a_browser(address, tmp_path):
    """Without the network: the index lies in the site."""
    with browser(tmp_path) as chrome:
        chrome.get(f"{address}/index.html")
        chrome.find_element("css selector", "input[name=query]").send_keys("offset")
        found = until(
            lambda: [e.text for e in chrome.find_elements("css selector", ".md-search-result__item") if e.text]
        )
        assert any("Offset and trend" in text for text in found)
        assert errors(chrome) == []
