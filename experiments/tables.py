"""The tables of README and docs, made from committed results.

    python experiments/tables.py

Each stands between the marks <!-- NAME --> and <!-- /NAME --> of a page; `tests/test_docs.py` checks that they agree.
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"


def shipped() -> str:
    errors = _read(ROOT / "src/kernelmap/models/nao-diverse/evaluation.json")["systems"]
    names = {"id": "ID: exp(-5r) sin 6r", "ood1": "OOD1: r(11-r) exp(-5r) sin 6r", "ood2": "OOD2: a Gaussian"}
    keys = ("operator_error_context", "operator_error_heldout", "kernel_error", "kernel_error_pooled")
    rows = [[names[name], *(f"{values[key]:.1%}" for key in keys)] for name, values in errors.items()]
    return _table(["system", "f, context", "f, held out", "kernel", "kernel, pooled"], rows)


def bench() -> str:
    cases = _read(RESULTS / "bench-attention.json")["cases"]
    rows = []
    for case in cases:
        ratio = "-" if case["ratio"] is None else f"{case['ratio']:.0f}"
        shape = [f"{case['n']}", f"{case['batch']}", case["dtype"], f"{case['threads']}"]
        rows.append([*shape, f"{1e3 * case['kernelmap_s']:.0f} ms", ratio, f"{case['peak_memory_gb']:.1f} GB"])
    return _table(["N", "batch", "precision", "threads", "kernelmap", "times faster", "peak memory"], rows)


def recipes() -> str:
    rows = []
    for path in sorted((RESULTS / "recipes").glob("*.json"), key=lambda path: _read(path)["seconds"]):
        result = _read(path)
        id_, ood1 = result["systems"]["id"], result["systems"]["ood1"]
        errors = [id_["operator_error_context"], ood1["operator_error_context"]]
        errors += [id_["operator_error_heldout"], ood1["operator_error_heldout"]]
        errors += [id_["kernel_error"], ood1["kernel_error"], id_["kernel_error_pooled"], ood1["kernel_error_pooled"]]
        cells = [f"{100 * a:.2f} / {100 * b:.2f}" for a, b in zip(errors[::2], errors[1::2], strict=True)]
        rows.append([f"`{path.stem}`", f"{result['epochs']}", f"{result['seconds'] / 60:.1f}", *cells])
    return _table(["recipe", "epochs", "minutes", "f, context", "f, held out", "kernel", "kernel, pooled"], rows)


TABLES = {"shipped": ("README.md", shipped), "bench": ("README.md", bench), "recipes": ("docs/training.md", recipes)}


def filled(page: str) -> str:
    """The text of a page with its tables made anew."""
    text = (ROOT / page).read_text()
    for name, (where, make) in TABLES.items():
        if where == page:
            mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
            if not mark.search(text):
                raise ValueError(f"{page} has no place for the table {name}")
            text = mark.sub(lambda found, make=make: found[1] + make() + "\n" + found[2], text)
    return text


def _read(path: Path) -> dict:
    return json.loads(path.read_text())


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    for page in {where for where, _ in TABLES.values()}:
        (ROOT / page).write_text(filled(page))
