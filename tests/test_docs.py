"""Documentation stays true: its examples run, its commands exist, its tables come from committed results."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from kernelmap.cli.main import COMMANDS
from kernelmap.reproduce.darcy_table import TABLE3
from kernelmap.reproduce.mechanics_table import TABLE4
from kernelmap.reproduce.radial import TABLE1, TABLE2
from kernelmap.reproduce.run import records

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


@pytest.mark.parametrize("table", [TABLE1, TABLE2, TABLE3, TABLE4], ids=["table1", "table2", "table3", "table4"])
def test_records_were_made_as_their_rows_say(table):
    made = records(ROOT / "experiments" / "results" / "paper", table.rows.values())
    epochs = {name: record["recipe"]["epochs"] for name, record in made.items() if "recipe" in record}
    assert epochs == {name: table.rows[name].epochs for name in epochs}
