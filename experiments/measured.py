"""Committed results, and how they are put in tables."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"


def read(path: Path) -> dict:
    return json.loads(path.read_text())


def part(problem: str, name: str) -> dict:
    """What was measured; nothing where that is still to be done."""
    path = RESULTS / problem / f"{name}.json"
    return read(path)["results"] if path.exists() else {}


def three(systems: dict, key: str, digits: int = 2) -> list[str]:
    return [" / ".join(f"{100 * systems[name][key]:.{digits}f}" for name in ("id", "ood1", "ood2"))]


def markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
