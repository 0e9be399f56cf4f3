"""Documentation stays true: its examples run, its commands parse, its tables come from committed results."""

import contextlib
import functools
import io
import re
import runpy
import shlex
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import tyro

from kernelmap.cli.main import COMMANDS, MAX_MEMORY, run
from kernelmap.core.files import read_json
from kernelmap.io import load_model, shipped_models
from kernelmap.maps import MAPS
from kernelmap.paper.tables.darcy import TABLE3
from kernelmap.paper.tables.mechanics import TABLE4
from kernelmap.paper.tables.radial import TABLE1, TABLE2
from kernelmap.paper.tables.rows import Row
from kernelmap.paper.tables.run import record_path, records
from kernelmap.problems import PROBLEMS
from kernelmap.problems.darcy import Darcy
from kernelmap.problems.darcy import data as darcy
from kernelmap.problems.mechanics import Plan, mnist
from kernelmap.problems.mechanics.plan import LOADS
from kernelmap.problems.radial.inputs import RADIUS, locations, two_waves
from kernelmap.problems.radial.kernels import test_kernels as unseen_kernels
from kernelmap.problems.radial.kernels import training_kernels
from kernelmap.training import Recipe
from processes import python

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]
PAPER = ROOT / "experiments" / "results" / "paper"


def text(page: str) -> str:
    return (ROOT / page).read_text()


# Examples and links


def test_the_python_examples_run(tmp_path):
    """Each by itself, as somebody would paste them."""
    for example in re.findall(r"```python\n(.*?)```", text("README.md"), re.DOTALL):
        run = python("-c", example, cwd=tmp_path)
        assert run.returncode == 0, run.stderr
    assert (tmp_path / "report.html").exists()
    found, expected = (
        [float(number) for number in part.strip(" []").split()] for part in run.stdout.splitlines()[0].split("expected")
    )
    assert found == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s,]+)(?:#[^)]*)?\)", text(page))
    missing = [
        link for link in links if "." in link and "://" not in link and not ((ROOT / page).parent / link).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_links_into_a_page_find_their_heading(page):
    missing = []
    for target, anchor in re.findall(r"\]\(([^)#\s,]*)#([^)]+)\)", text(page)):
        if "://" not in target:
            lines = ((ROOT / page).parent / target if target else ROOT / page).read_text().splitlines()
            headings = {line.lstrip("#").strip().lower() for line in lines if line.startswith("#")}
            if anchor not in {re.sub(r"[^\w\s-]", "", heading).replace(" ", "-") for heading in headings}:
                missing.append(f"{target}#{anchor}")
    assert missing == []


# Commands

VALUES = {"E": "1", "D": "50", "PROBLEM": "radial", "NAME": "nao", "MODEL": "radial"}
"""What stands for the docs' words in capitals where a command asks for a number or a known name."""


def commands(page: str) -> list[str]:
    """Lines of code and code in a sentence that begin with `kernelmap`, without what is said about them."""
    lines = re.findall(r"^    (kernelmap .*)$", text(page), re.MULTILINE)
    sentences = re.findall(r"`(kernelmap [^`]*)`", text(page).replace("\n", " "))
    return sorted({re.split(r"\s{2,}", line)[0] for line in [*lines, *sentences]})


def words_of(command: str) -> list[str]:
    """The words after `kernelmap`: of alternatives the first, and options in brackets as if they were given."""
    words = shlex.split(re.sub(r"[\[\]]", " ", command))[1:]
    return [VALUES.get(word, word).partition("|")[0] for word in words]


def parse(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The command's own parser reads the words, and nothing is run."""
    reads: Callable[..., Any] = tyro.cli

    def only_read(function: Callable[..., None], **settings: Any) -> None:
        reads(functools.wraps(function)(lambda *args, **kwargs: None), **settings)

    with monkeypatch.context() as patch:
        patch.setattr(tyro, "cli", only_read)
        assert run(words) == 0


@pytest.mark.parametrize("page", PAGES)
def test_commands_parse(page, monkeypatch, capsys):
    wrong = {}
    for command in commands(page):
        words = words_of(command)
        if "..." in words:
            words = words[:1]
        only_named = not any(word.startswith("-") for word in words)
        try:
            parse([*words, "--help"] if only_named else words, monkeypatch)
        except (SystemExit, AssertionError) as stop:
            if not (isinstance(stop, SystemExit) and stop.code in (0, None)):
                wrong[command] = capsys.readouterr().err
    assert wrong == {}


@pytest.mark.parametrize(
    "command",
    [
        "kernelmap invent radial --out DIR",
        "kernelmap train torus --out DIR",
        "kernelmap train radial --map nao --reach 3 --out DIR",
        "kernelmap train mechanics --data-file FILE --out DIR",
        "kernelmap generate radial --seed 0 --out FILE.h5",
        "kernelmap discover FILE --noise 0.1",
        "kernelmap bench everything --json FILE",
    ],
)
def test_a_wrong_command_does_not_parse(command, monkeypatch):
    with pytest.raises((SystemExit, AssertionError)) as stop:
        parse(words_of(command), monkeypatch)
    assert not isinstance(stop.value, SystemExit) or stop.value.code == 2


def test_help_shows_the_formula_of_a_problem(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit, match="0"):
        run(["train", "--help"])
    assert "[u(x+r) + u(x-r) - 2u(x)]" in capsys.readouterr().out


@pytest.fixture(scope="module")
def options() -> set[str]:
    """Of every command, with every problem and every map."""
    given = [[name] for name in COMMANDS if name not in ("generate", "train", "evaluate")]
    for problem in PROBLEMS.names:
        given += [["generate", problem], ["evaluate", "radial", problem]]
        given += [["train", problem, "--map", name] for name in MAPS.names if problem == "radial"] + [
            ["train", problem]
        ]
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setenv("COLUMNS", "300")
        for words in given:
            with pytest.raises(SystemExit, match="0"):
                run([*words, "--help"])
    return set(re.findall(r"--[a-z0-9-]+", printed.getvalue())) | {MAX_MEMORY}


@pytest.mark.parametrize("page", PAGES)
def test_options_exist(page, options):
    assert set(re.findall(r"`(--[a-z0-9-]+)", text(page))) <= options


@pytest.mark.parametrize("page", PAGES)
def test_experiments_have_the_parts_named(page, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "experiments")
    for script, part in re.findall(r"`python experiments/(\w+)\.py ([\w-]+)`", text(page)):
        assert part in runpy.run_path(str(ROOT / "experiments" / f"{script}.py"))["PARTS"], f"{script}.py {part}"


# Tables


@pytest.mark.parametrize("page", [page for page in PAGES if "<!-- /" in text(page)])
def test_tables_are_those_of_the_results(page, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "experiments")
    tables = runpy.run_path(str(ROOT / "experiments" / "tables.py"))
    assert tables["filled"](page) == text(page)


@pytest.mark.parametrize("table", [TABLE1, TABLE2, TABLE3, TABLE4], ids=["table1", "table2", "table3", "table4"])
def test_records_were_made_as_their_rows_say(table):
    made = records(PAPER, table.rows.values())
    epochs = {name: record["recipe"]["epochs"] for name, record in made.items() if "recipe" in record}
    assert epochs == {name: table.rows[name].epochs for name in epochs}


# Figures, from the code itself

PROBLEM_OF = [(TABLE1, "radial"), (TABLE2, "radial"), (TABLE3, "darcy"), (TABLE4, "mechanics")]


def size(row: Row, shipped: str) -> int:
    """Parameters of a row's map, built on the grids of the shipped model of its problem."""
    shape = replace(load_model(shipped)[0].shape, d=row.d)
    return MAPS[row.map].build(shape, row.options).parameter_count


@pytest.mark.parametrize(("table", "shipped"), PROBLEM_OF, ids=["table1", "table2", "table3", "table4"])
def test_sizes_in_the_paper_tables(table, shipped):
    trained = {name: row for name, row in table.rows.items() if row.trained and record_path(PAPER, row).exists()}
    printed = {name: read_json(record_path(PAPER, row))["parameters"] for name, row in trained.items()}
    assert {name: size(row, shipped) for name, row in trained.items()} == printed


def says(page: str, *sentences: str) -> None:
    """A page holds each of these, whatever its line breaks."""
    words = " ".join(text(page).split())
    assert [sentence for sentence in sentences if sentence not in words] == []


def test_sizes_of_the_shipped_models():
    sizes = {name: load_model(name)[0].parameter_count for name in shipped_models()}
    says("docs/darcy.md", f"{sizes['darcy']} learned numbers", f"| posterior (ours), p-to-g | {sizes['darcy']} |")
    says("docs/mechanics.md", f"| posterior (ours), ID | {sizes['mechanics']} |", "Five numbers are learned")
    says("docs/paper.md", f"| posterior (ours) | {sizes['radial']} |", f"| NAO, dk = 20 | {sizes['nao-diverse']} ")


def test_the_shipped_numbers_of_the_elastic_prior():
    model, about = load_model("mechanics")
    poisson = float(model.state_dict()["prior.poisson"])
    says(
        "docs/mechanics.md", f"Poisson's ratio comes out as {poisson:.2f}", f"from {about['pairs']} pairs each of five"
    )
    assert len(about["specimens"]) == 5


def test_the_radial_problem_in_numbers():
    kernels, x = training_kernels("released"), locations("paper", 0.0125)
    sine = sum(name.startswith("sine") for name in kernels)
    inputs = len(two_waves("released").functions(x[:1]))
    says(
        "docs/data.md",
        f"N = {round(RADIUS / 0.0125)} values",
        f"the {len(x)} locations per input",
        f"`sine` {sine} kernels; `diverse` {len(kernels)};",
        f"n = {inputs * len(x)} // d",
        ", ".join(f"`{name}`" for name in unseen_kernels("released")),
    )
    says("docs/paper.md", f"{len(kernels)} systems, {15 * len(kernels)} contexts")


def test_the_darcy_problem_in_numbers():
    page, n = "docs/darcy.md", Darcy.n
    says(page, f"{darcy.TRAINING} training systems and {darcy.TEST} test systems", f"{darcy.PAIRS} more pairs")
    says(page, f"on n x n nodes ({n} by default", f"of the {n**2} output points")


def test_the_mechanics_problem_in_numbers():
    specimens = mnist()
    plan, nodes = Plan(specimens), (specimens.pixels + 1) ** 2
    says(
        "docs/mechanics.md",
        f"{len(specimens)} specimens: the first {len(specimens) // 10} images of each digit",
        f"the same {LOADS} loads. Specimens that a split keeps for testing get {plan.heldout} more",
        f"(S, {LOADS + plan.heldout}, 2, {nodes})",
        f"the {specimens.pixels**2} stiffnesses",
        f"`{plan.elements}`, is one Q2 element per pixel",
    )


def option_names(kind: Any) -> set[str]:
    """On the command line, of a dataclass."""
    return {field.name.replace("_", "-") for field in fields(kind)}


def test_options_of_maps_are_listed():
    table = text("docs/maps.md").split("| map | options |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| ((?:`[\w-]+`(?:, )?)+) \| (.*) \|$", table, re.MULTILINE)
    listed = {
        name: set(re.findall(r"--([\w-]+)", given)) for names, given in rows for name in re.findall(r"[\w-]+", names)
    }
    assert listed == {name: option_names(MAPS[name].Options) for name in MAPS.names}


def test_options_of_problems_and_recipe_are_listed():
    (problems,) = re.findall(r"^\| the problem \| (.*) \|$", text("docs/training.md"), re.MULTILINE)
    listed = {part.split("`")[1]: set(re.findall(r"--([\w-]+)", part)) for part in problems.split("; ")}
    for_testing = {"mechanics": {"specimens"}}
    assert {name: given | for_testing.get(name, set()) for name, given in listed.items()} == {
        name: option_names(PROBLEMS[name]) for name in PROBLEMS.names
    }
    (recipe,) = re.findall(r"^\| the recipe \| (.*) \|$", text("docs/training.md"), re.MULTILINE)
    assert set(re.findall(r"--([\w-]+)", recipe)) == option_names(Recipe)
