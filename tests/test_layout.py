"""The layout: arrows between packages point up, there are no cycles inside them, and files stay small."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

import kernelmap

SOURCE = Path(kernelmap.__file__).parent
ROOT = Path(__file__).parents[1]

# A package may import those before it, never those after it.
PACKAGES = [
    "core",
    "operators",
    "estimators",
    "maps",
    "posterior",
    "io",
    "evaluation",
    "problems",
    "training",
    "discovery",
    "report",
    "paper",
    "app",
    "cli",
]
LONGEST = 300
MOST_FILES = 16
FORBIDDEN_AT_IMPORT = {
    "matplotlib",
    "plotly",
    "streamlit",
    "tensorboard",
    "wandb",
    "gradio",
    "dask",
    "joblib",
    "mlxtend",
    "pandas",
    "sklearn",
}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in SOURCE.rglob("*.py")}


def imports(path: Path) -> set[str]:
    """Modules of kernelmap that a module imports, anywhere in it; a package stands for its __init__."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in MODULES else node.module)
    return found & set(MODULES)


ARROWS = {name: imports(path) for name, path in MODULES.items() if name != "kernelmap"}


def test_every_module_has_a_package():
    assert {name.split(".")[1] for name in ARROWS} == {*PACKAGES, "__main__", "models"}


def test_arrows_between_packages_never_point_down():
    level = {package: i for i, package in enumerate(PACKAGES)} | {"__main__": len(PACKAGES), "models": 0}
    for name, others in ARROWS.items():
        for other in others - {"kernelmap"}:
            assert level[other.split(".")[1]] <= level[name.split(".")[1]], f"{name} imports {other}"


def test_there_are_no_cycles():
    """Between modules, whether they are imported at the top of a file or inside a function."""
    order = list(TopologicalSorter(ARROWS).static_order())
    assert set(ARROWS) <= set(order)


def test_the_test_of_cycles_bites():
    from graphlib import CycleError

    for a, b in pairwise(["kernelmap.discovery.discover", "kernelmap.discovery.check", "kernelmap.discovery.discover"]):
        broken = {name: set(others) for name, others in ARROWS.items()}
        broken[a].add(b)
        broken[b].add(a)
        with pytest.raises(CycleError):
            list(TopologicalSorter(broken).static_order())


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_says_what_is_public(package):
    module = import_module(f"kernelmap.{package}")
    assert module.__doc__
    if package not in ("cli", "paper"):
        assert all(hasattr(module, name) for name in module.__all__)
        contributing = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text()
        row = next(line for line in contributing.splitlines() if line.startswith(f"| `{package}/`"))
        assert [name for name in module.__all__ if f"`{name}`" not in row] == []


def test_public_names_of_the_top():
    assert all(getattr(kernelmap, name) is not None for name in kernelmap.__all__)
    assert dir(kernelmap) == kernelmap.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kernelmap.nothing  # pyright: ignore


def test_files_and_packages_stay_small():
    """Files of the tests, experiments and tools as well."""
    others = [path for folder in ("tests", "experiments", "tools") for path in (ROOT / folder).rglob("*.py")]
    lengths = {str(path): len(path.read_text().splitlines()) for path in [*MODULES.values(), *others]}
    assert {path: n for path, n in lengths.items() if n > LONGEST} == {}
    sizes = {path: len(list(path.glob("*.py"))) for path in {module.parent for module in MODULES.values()}}
    assert {str(path): n for path, n in sizes.items() if n > MOST_FILES} == {}


def test_import_is_light():
    """`import kernelmap` and its commands' modules load no plotting and no optional package."""
    modules = [name for name in MODULES if name.startswith("kernelmap.cli.")]
    code = f"import sys, {', '.join(modules)}; print(*{{name.split('.')[0] for name in sys.modules}})"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert loaded & FORBIDDEN_AT_IMPORT == set()


def test_help_does_not_wait_for_torch():
    code = "import sys; sys.argv = ['kernelmap', '--help']; from kernelmap.cli.main import main; main(); "
    code += "print('loaded', *sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "kernelmap discover" in shown
    loaded = shown.rpartition("loaded")[2].split()
    assert not {"torch", "numpy", "h5py"} & set(loaded)
