"""Every module knows its room: what it may import is written here."""

import ast
from pathlib import Path

import kernelmap

SOURCE = Path(kernelmap.__file__).parent

# Lower rooms first. A module may import its own room and the rooms before it.
ROOMS = [
    {"errors"},
    {"files", "grids", "linalg", "progress", "provenance"},
    {"context"},
    {"kernel"},
    {"systems", "metrics", "microstructure"},
    {"estimators", "maps"},
    {"identifiability"},
    {"cautions"},
    {"problems"},
    {"model", "released", "evaluation", "reading"},
    {"training"},
    {"discovery", "report"},
    {"plots"},
    {"benchmarks", "reproduce"},
    {"cli"},
]
FORBIDDEN_AT_IMPORT = {"matplotlib", "tensorboard", "wandb", "gradio", "dask", "joblib", "mlxtend", "pandas", "sklearn"}


def imports(path: Path) -> set[str]:
    """Rooms of kernelmap that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("kernelmap.") and name.count(".")}
    return found


def test_every_module_has_a_room():
    rooms = set().union(*ROOMS)
    modules = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")}
    assert modules - rooms - {"__init__", "models"} == set()


def test_arrows_never_point_back():
    level = {room: i for i, rooms in enumerate(ROOMS) for room in rooms}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room != "__init__":
            for other in imports(path):
                assert level[other] <= level.get(room, 0), f"{path.relative_to(SOURCE)} imports {other}"


def test_import_is_light():
    """`import kernelmap` and its commands' modules load no plotting and no optional package."""
    import subprocess
    import sys

    code = "import sys, kernelmap, kernelmap.cli.main; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert loaded & FORBIDDEN_AT_IMPORT == set()
