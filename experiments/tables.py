"""The tables of README and docs, made from committed results.

    python experiments/tables.py

Each stands between the marks <!-- NAME --> and <!-- /NAME --> of a page; `tests/test_docs.py` checks that they agree.
"""

import json
import re
from pathlib import Path

from kernelmap.reproduce.claims import claims as paper_claims
from kernelmap.reproduce.darcy_table import TABLE3
from kernelmap.reproduce.mechanics_table import TABLE4
from kernelmap.reproduce.radial import TABLE1, TABLE2
from kernelmap.reproduce.run import records
from kernelmap.reproduce.tables import HEADINGS, MISSING, RESOLUTION_HEADINGS, cells, resolution_cells

ROOT = Path(__file__).parents[1]
PAPER_TABLES = {"table1": TABLE1, "table2": TABLE2, "table3": TABLE3, "table4": TABLE4}
RESULTS = ROOT / "experiments" / "results"
PAPER = RESULTS / "paper"


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


def kernels() -> str:
    tests = _results("test")
    rows = [
        [
            f"`radial`, d = {d}",
            *_three(tests[d]["systems"], "kernel_error"),
            *_three(tests[d]["systems"], "coverage95", 0),
        ]
        for d in tests
    ]
    nao = _read(ROOT / "src/kernelmap/models/nao-diverse/evaluation.json")["systems"]
    rows.append(["`nao-diverse`, d = 302", *_three(nao, "kernel_error"), "-"])
    return _table(["model", "kernel error", "coverage of the 95 % band"], rows)


def test_systems() -> str:
    rows = []
    for d, result in _results("test").items():
        keys = ("kernel_error", "kernel_error_pooled", "operator_error_context", "operator_error_heldout", "coverage95")
        rows.append([d, *(cell for key in keys for cell in _three(result["systems"], key))])
    return _table(["d", "kernel", "kernel, pooled", "f, context", "f, held out", "coverage"], rows)


def coverage() -> str:
    rows = []
    for d, systems in _results("coverage").items():
        covered = [values["coverage95"] for values in systems.values()]
        errors = sorted(values["kernel_error"] for values in systems.values())
        median = errors[len(errors) // 2]
        low = min(systems, key=lambda name: systems[name]["coverage95"])
        rows.append(
            [d, f"{100 * sum(covered) / len(covered):.1f}", f"{100 * min(covered):.0f} ({low})", f"{100 * median:.2f}"]
        )
    return _table(["d", "coverage, mean", "lowest", "kernel error, median"], rows)


def noise() -> str:
    rows = []
    table = _results("noise")
    for level, d in dict.fromkeys(tuple(key.split()[:2]) for key in table):
        systems = {name: table[f"{level} {d} {name}"] for name in ("id", "ood1", "ood2")}
        cells = [
            _three(systems, who)[0] if who in systems["id"] else "-"
            for who in ("posterior", "dartr", "tikhonov", "nao")
        ]
        rows.append([f"{float(level):.0%}", d, *cells, *_three(systems, "coverage95", 0)])
    return _table(["noise", "d", "posterior", "DARTR", "Tikhonov", "NAO", "coverage"], rows)


def grids() -> str:
    rows = []
    for label, values in _results("grids").items():
        name, d = label.split()
        rows.append([name, d, " / ".join(f"{100 * value:.2f}" for value in values.values())])
    return _table(["grid", "d", "kernel error"], rows)


def nao_mean() -> str:
    result = _results("nao-mean")
    return _table(["kernel", "error"], [[who, *_three(result, who)] for who in ("nao", "conditioned", "posterior")])


def speed() -> str:
    rows = []
    for case in _read(RESULTS / "bench-discover.json")["cases"]:
        ratio = "-" if case["ratio"] is None else f"{case['ratio']:.1f}"
        times = [f"{1e3 * case['posterior_s']:.0f} ms", f"{case['over_bare']:.1f}", ratio]
        rows.append([f"{case['n']}", f"{case['d']}", *times, f"{case['peak_memory_gb']:.2f} GB"])
    return _table(["N", "d", "posterior", "times the bare algebra", "times faster than DARTR", "peak memory"], rows)


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


def paper_table(name: str) -> str:
    """A table of the paper; the blocks' headings stand in rows of their own."""
    table = PAPER_TABLES[name]
    rows = []
    for heading, block in cells(table, records(PAPER, table.rows.values())):
        rows.append([f"**{heading}**", *[""] * (len(HEADINGS) - 1)])
        rows += block
    return _table(list(HEADINGS), rows)


def epochs() -> str:
    """Rows made with several numbers of epochs."""
    rows = []
    for name in sorted({path.stem.rsplit("-", 2)[0] for path in PAPER.glob("*-epochs.json")}):
        made = [_read(path) for path in (PAPER / f"{name}.json", *PAPER.glob(f"{name}-*-epochs.json"))]
        for record in sorted(made, key=lambda record: record["recipe"]["epochs"]):
            keys = ("operator_error_context", "kernel_error_pooled")
            cells = [cell for key in keys for cell in _three(record["systems"], key)]
            rows.append([f"`{name}`", f"{record['recipe']['epochs']}", *cells])
    return _table(["row", "epochs", "f, context", "kernel, pooled"], rows)


def learning_curves(name: str) -> str:
    """Validation errors of the trained rows of a table, on the way."""
    shares = (0.1, 0.25, 0.5, 0.75, 1.0)
    rows = []
    for row, record in records(PAPER, PAPER_TABLES[name].rows.values()).items():
        if "curve" in record:
            curve = record["curve"]
            points = [curve[round(share * (len(curve) - 1))] for share in shares]
            rows.append([f"`{row}`", f"{curve[-1][0]}", *(f"{100 * point[2]:.1f}" for point in points)])
    return _table(["row", "epochs", *(f"at {share:.0%}" for share in shares)], rows)


def far_mass() -> str:
    rows = [
        [
            PAPER_TABLES["table3"].rows[name].label,
            *(f"{100 * record['systems']['test'][key]:.2f}" for key in ("far_mass", "microstructure_accuracy")),
        ]
        for name, record in records(PAPER, PAPER_TABLES["table3"].rows.values()).items()
        if name.endswith("p-to-g")
    ]
    return _table(["model", "beyond two steps", "phases"], rows)


def resolution() -> str:
    path = PAPER / "cross-resolution.json"
    return _table(list(RESOLUTION_HEADINGS), resolution_cells(_read(path)) if path.exists() else [])


def claims() -> str:
    found = {name: record for t in PAPER_TABLES.values() for name, record in records(PAPER, t.rows.values()).items()}
    path = PAPER / "cross-resolution.json"
    rows = paper_claims(found, _read(path) if path.exists() else None)
    return _table(["claim", "measured here", "holds"], [list(row) for row in rows])


def darcy(part: str) -> str:
    keys = {
        "operator_error_heldout": 4,
        "kernel_error": 4,
        "coverage95": 1,
        "microstructure_accuracy": 2,
        "far_mass": 4,
    }
    rows = []
    for name, values in _part("darcy", part).items():
        cells = [MISSING if values.get(key) is None else f"{100 * values[key]:.{n}f}" for key, n in keys.items()]
        rows.append([name, *cells])
    return _table(["case, d", "f, held out", "kernel", "coverage", "phases", "far"], rows)


def darcy_bench() -> str:
    rows = []
    for case in _read(RESULTS / "bench-darcy.json")["cases"]:
        faster = MISSING if case["times_faster"] is None else f"{case['times_faster']:.1f}"
        rows.append([f"{case['n']}", case["form"], f"{case['seconds']:.2f}", faster, f"{case['peak_memory_gb']:.1f}"])
    return _table(["n", "form", "seconds", "times faster", "GB"], rows)


def darcy_tokens() -> str:
    results = _part("darcy", "b-to-p")
    return _table(
        ["input", "d = 20", "d = 50"], [[k, *(f"{100 * v:.2f}" for v in e.values())] for k, e in results.items()]
    )


def mechanics() -> str:
    result = _read(RESULTS / "bench-mechanics.json")
    rows = [[c["solver"], c["elements"], f"{c['solves']}", f"{c['ms_per_solve']:.0f} ms"] for c in result["cases"]]
    rows[0].append(f"{result['ratio']:.0f}")
    rows[1].append("1")
    return _table(["solver", "elements", "solves", "core time per solve", "times faster"], rows)


def mechanics_errors() -> str:
    """The posterior's errors, and the floor of the same specimens."""
    floors = _part("mechanics", "floor")
    rows = []
    for case, found in _part("mechanics", "test").items():
        split, d = case.split()
        mean = found["systems"]["test"]
        cells = [f"{100 * mean[key]:.2f}" for key in ("operator_error_context", "operator_error_heldout")]
        floor = [floors[split][name]["floor"] for name in found["specimens"]] if split in floors else []
        cells.append(f"{100 * sum(floor) / len(floor):.2f}" if floor else MISSING)
        rows.append([f"{split.upper()}, d = {d}", f"{len(found['specimens'])}", *cells])
    return _table(["split", "specimens", "u, context", "u, held out", "floor"], rows)


def mechanics_floor() -> str:
    rows = [
        [name, *(f"{100 * found[key]:.2f}" for key in ("at_rest", "least_squares", "floor"))]
        for specimens in _part("mechanics", "floor").values()
        for name, found in specimens.items()
    ]
    return _table(["specimen", "linearised at rest", "least squares", "floor"], rows)


TABLES = {
    "kernels": ("README.md", kernels),
    "shipped": ("README.md", shipped),
    "bench": ("README.md", bench),
    "recipes": ("docs/training.md", recipes),
    "test": ("docs/radial.md", test_systems),
    "coverage": ("docs/radial.md", coverage),
    "noise": ("docs/radial.md", noise),
    "grids": ("docs/radial.md", grids),
    "nao-mean": ("docs/radial.md", nao_mean),
    "speed": ("docs/radial.md", speed),
    "darcy": ("docs/darcy.md", lambda: darcy("test")),
    "darcy-noise": ("docs/darcy.md", lambda: darcy("noise")),
    "darcy-mesh": ("docs/darcy.md", lambda: darcy("mesh")),
    "table3": ("docs/darcy.md", lambda: paper_table("table3")),
    "table3-curves": ("docs/darcy.md", lambda: learning_curves("table3")),
    "far": ("docs/darcy.md", far_mass),
    "darcy-bench": ("docs/darcy.md", darcy_bench),
    "darcy-b": ("docs/darcy.md", darcy_tokens),
    "table1": ("docs/paper.md", lambda: paper_table("table1")),
    "table2": ("docs/paper.md", lambda: paper_table("table2")),
    "epochs": ("docs/paper.md", epochs),
    "resolution": ("docs/paper.md", resolution),
    "claims": ("docs/paper.md", claims),
    "mechanics": ("docs/mechanics.md", mechanics),
    "mechanics-errors": ("docs/mechanics.md", mechanics_errors),
    "mechanics-floor": ("docs/mechanics.md", mechanics_floor),
    "table4": ("docs/mechanics.md", lambda: paper_table("table4")),
}


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


def _results(part: str) -> dict:
    return _part("radial", part)


def _part(problem: str, part: str) -> dict:
    """What was measured; nothing where that is still to be done."""
    path = RESULTS / problem / f"{part}.json"
    return _read(path)["results"] if path.exists() else {}


def _three(systems: dict, key: str, digits: int = 2) -> list[str]:
    return [" / ".join(f"{100 * systems[name][key]:.{digits}f}" for name in ("id", "ood1", "ood2"))]


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    for page in {where for where, _ in TABLES.values()}:
        (ROOT / page).write_text(filled(page))
