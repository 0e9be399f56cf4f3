"""The page of reliability: every test that it names is there."""

import ast
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"


def defined(file: str) -> set[str]:
    """Functions and classes of a file of tests."""
    tree = ast.parse((Path(__file__).parent / file).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_every_promise_names_a_test_that_is_there():
    promises = [line for line in PAGE.read_text().splitlines() if re.search(r"`test_\w+\.py", line)]
    assert len(promises) > 30
    for line in promises:
        file = ""
        for named, names in re.findall(r"`(test_\w+\.py)?((?:::\w+)*)`", line):
            file = named or file
            assert not names or set(names.split("::")[1:]) <= defined(file), line
