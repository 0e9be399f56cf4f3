"""The field's words: private ones that were once used here do not come back as names."""

import ast
from pathlib import Path

import kernelmap

SOURCE = Path(kernelmap.__file__).parent

PRIVATE = {
    *("BandedMap", "Kinds", "Try", "attempt", "only", "likely", "FirstPass", "SecondPass", "passes", "thorough"),
    *("share", "THETA", "determined", "data_share", "log_kept", "USED", "JUDGES", "ENOUGH", "LOUD", "FAR_OUT"),
    *(
        "white",
        "WHITE",
        "LEAST_WHITE",
        "suited",
        "Caution",
        "cautions",
        "surprise",
        "dark",
        "DARK",
        "telling",
        "held_out",
    ),
}


def names(path: Path) -> set[str]:
    """Classes, functions, constants and attributes of a module."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def test_no_private_word_is_a_name():
    assert {str(path): bad for path in SOURCE.rglob("*.py") if (bad := names(path) & PRIVATE)} == {}


def test_a_mixture_has_components():
    """Cells are those of a mesh, which a mixture does not have."""
    files = (SOURCE / "posterior" / "kernel1d").rglob("mixture.py")
    assert {str(path): bad for path in files if (bad := names(path) & {"Cell", "cells", "cell"})} == {}


def test_the_search_finds_them(tmp_path):
    (tmp_path / "old.py").write_text("class Try:\n    share: float\n\n    def likely(self): return self.dark")
    assert names(tmp_path / "old.py") & PRIVATE == {"Try", "share", "likely", "dark"}
