"""The documentation as a site: built without a warning, nothing fetched from the network, every page in its search."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    assert pages <= {path.stem for path in site.glob("*.html")}
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


def test_nothing_is_fetched_from_the_network(site):
    for path in site.glob("*.html"):
        assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="https?://[^"]*"', path.read_text())
