"""The package as others get it: built, installed beside its run dependencies alone, and used outside the checkout."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from kernelmap.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
MOST_BYTES = 3_000_000
BUILD = "import setuptools.build_meta as build; build.build_sdist({!r})"


def run(*words: object, cwd: Path) -> str:
    """A command that knows nothing of this checkout."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(list(map(str, words)), cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def needed(name: str, found: set[str]) -> set[str]:
    """A distribution and all that it requires without extras, as far as it is installed here."""
    if name not in found:
        try:
            requirements = map(Requirement, distribution(name).requires or [])
        except PackageNotFoundError:
            return found
        found.add(name)
        for one in requirements:
            if one.marker is None or one.marker.evaluate({"extra": ""}):
                needed(one.name, found)
    return found


def run_dependencies() -> set[str]:
    return needed("kernelmap", set()) - {"kernelmap"}


def link(name: str, place: Path) -> None:
    """A distribution that is installed here, into another environment."""
    listed = distribution(name)
    for top in {file.parts[0] for file in listed.files or [] if file.parts[0] not in ("..", "__pycache__")}:
        if not (place / top).exists():
            (place / top).symlink_to(str(listed.locate_file(top)))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    """From what git knows, as a clean clone would build it."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("sdist")
    for name in filter(lambda name: (ROOT / name).is_file(), listed.stdout.splitlines()):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    run(sys.executable, "-c", BUILD.format(str(out)), cwd=tree)
    return next(out.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory) -> Path:
    """Built from the sdist, so that nothing is missing there."""
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", out, sdist, cwd=out)
    return next(out.glob("*.whl"))


def test_the_wheel_is_small_and_the_sdist_whole(sdist, wheel):
    assert wheel.stat().st_size < MOST_BYTES
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "src/kernelmap/report/page.html.jinja"} <= names


def test_it_runs_outside_the_checkout_with_its_run_dependencies_alone(wheel, tmp_path):
    """Starts torch twice, which takes seconds."""
    venv.create(tmp_path / "fresh")
    (place,) = (tmp_path / "fresh").glob("lib/python*/site-packages")
    for name in run_dependencies():
        link(name, place)
    python = tmp_path / "fresh" / "bin" / "python"
    install = ["-q", "install", "--no-index", "--no-deps", wheel]
    run(sys.executable, "-m", "pip", "--python", python, *install, cwd=tmp_path)
    for extra in ("pytest", "mlxtend", "streamlit", "mkdocs"):
        assert subprocess.run([python, "-c", f"import {extra}"], capture_output=True).returncode
    assert run(python, "-c", "import kernelmap; print(kernelmap.__file__)", cwd=tmp_path).startswith(str(place))
    shown = run(tmp_path / "fresh" / "bin" / "kernelmap", "demo", "--out", "demo", cwd=tmp_path)
    assert "true kernel inside the 95 % band" in shown
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {"report.html", "discovery.png", "kernel.csv"}


def test_the_gallery_needs_nothing_that_the_docs_do_not_bring():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*extras["dependencies"], *extras["optional-dependencies"]["docs"]]
    assert "kernelmap[examples]" in listed
    brought = {Requirement(one).name for one in [*listed, *extras["optional-dependencies"]["examples"]]}
    for page in (ROOT / "gallery").glob("*.py"):
        nodes = list(ast.walk(ast.parse(page.read_text())))
        imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
        assert {name.partition(".")[0] for name in imported} - sys.stdlib_module_names <= {"kernelmap", *brought}


def test_every_extra_is_in_the_table_of_the_docs():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r"^\| `([a-z]+)` \|", (ROOT / "docs/install.md").read_text(), re.MULTILINE)) == set(extras)


def test_one_version_everywhere(kernelmap):
    number = version("kernelmap")
    assert kernelmap("--version") == (0, f"kernelmap {number}\n", "")
    assert re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1] == number  # pyright: ignore
    assert f"\n## {number}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"kernelmap=={number}" in (ROOT / "constraints.txt").read_text()


def test_a_shell_completes_commands_and_options(kernelmap, tmp_path):
    code, script, err = kernelmap("completion", "bash")
    assert code == 0, err
    (tmp_path / "completion").write_text(script)
    asked = "COMP_WORDS=({}); COMP_CWORD={}; _tyro_kernelmap; echo ${{COMPREPLY[@]}}"
    lines = [asked.format("kernelmap ''", 1), asked.format("kernelmap discover --kee", 2)]
    shown = run("bash", "-c", f"source {tmp_path / 'completion'}; {'; '.join(lines)}", cwd=tmp_path).splitlines()
    assert set(COMMANDS) <= set(shown[0].split())
    assert shown[1] == "--keep-outliers"
