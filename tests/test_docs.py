"""Documentation stays true: its examples run, its commands exist, its tables come from committed results."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from kernelmap.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]


def test_the_python_example_runs(tmp_path):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    run = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "kernel.csv").exists()
    assert "expected" in run.stdout


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s,]+)(?:#[^)]*)?\)", (ROOT / page).read_text())
    missing = [
        link for link in links if "." in link and "://" not in link and not ((ROOT / page).parent / link).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_exist(page):
    used = set(re.findall(r"(?:^    |`)kernelmap ([a-z-]+)", (ROOT / page).read_text(), re.MULTILINE))
    assert used <= set(COMMANDS)


@pytest.mark.parametrize("page", [page for page in PAGES if "<!-- /" in (ROOT / page).read_text()])
def test_tables_are_those_of_the_results(page, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "experiments")
    tables = runpy.run_path(str(ROOT / "experiments" / "tables.py"))
    assert tables["filled"](page) == (ROOT / page).read_text()
