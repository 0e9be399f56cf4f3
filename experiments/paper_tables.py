"""The paper's tables, and what they say."""

from measured import RESULTS, markdown, read, three

from kernelmap.paper.claims import claims as paper_claims
from kernelmap.paper.tables.darcy import TABLE3
from kernelmap.paper.tables.mechanics import TABLE4
from kernelmap.paper.tables.radial import TABLE1, TABLE2
from kernelmap.paper.tables.run import records
from kernelmap.paper.tables.text import HEADINGS, RESOLUTION_HEADINGS, cells, resolution_cells

PAPER = RESULTS / "paper"
PAPER_TABLES = {"table1": TABLE1, "table2": TABLE2, "table3": TABLE3, "table4": TABLE4}


def paper_table(name: str) -> str:
    """A table of the paper; the blocks' headings stand in rows of their own."""
    table = PAPER_TABLES[name]
    rows = []
    for heading, block in cells(table, records(PAPER, table.rows.values())):
        rows.append([f"**{heading}**", *[""] * (len(HEADINGS) - 1)])
        rows += block
    return markdown(list(HEADINGS), rows)


def epochs() -> str:
    """Rows made with several numbers of epochs."""
    rows = []
    for name in sorted({path.stem.rsplit("-", 2)[0] for path in PAPER.glob("*-epochs.json")}):
        made = [read(path) for path in (PAPER / f"{name}.json", *PAPER.glob(f"{name}-*-epochs.json"))]
        for record in sorted(made, key=lambda record: record["recipe"]["epochs"]):
            keys = ("operator_error_context", "kernel_error_pooled")
            cells = [cell for key in keys for cell in three(record["systems"], key)]
            rows.append([f"`{name}`", f"{record['recipe']['epochs']}", *cells])
    return markdown(["row", "epochs", "f, context", "kernel, pooled"], rows)


def learning_curves(name: str) -> str:
    """Validation errors of the trained rows of a table, on the way."""
    shares = (0.1, 0.25, 0.5, 0.75, 1.0)
    rows = []
    for row, record in records(PAPER, PAPER_TABLES[name].rows.values()).items():
        if "curve" in record:
            curve = record["curve"]
            points = [min(curve, key=lambda at: abs(at[0] - share * curve[-1][0])) for share in shares]
            rows.append([f"`{row}`", f"{curve[-1][0]}", *(f"{100 * point[2]:.1f}" for point in points)])
    return markdown(["row", "epochs", *(f"at {share:.0%}" for share in shares)], rows)


def far_mass() -> str:
    rows = [
        [
            PAPER_TABLES["table3"].rows[name].label,
            *(f"{100 * record['systems']['test'][key]:.2f}" for key in ("far_mass", "microstructure_accuracy")),
        ]
        for name, record in records(PAPER, PAPER_TABLES["table3"].rows.values()).items()
        if name.endswith("p-to-g")
    ]
    return markdown(["model", "beyond two steps", "phases"], rows)


def resolution() -> str:
    path = PAPER / "cross-resolution.json"
    return markdown(list(RESOLUTION_HEADINGS), resolution_cells(read(path)) if path.exists() else [])


def claims() -> str:
    found = {name: record for t in PAPER_TABLES.values() for name, record in records(PAPER, t.rows.values()).items()}
    path = PAPER / "cross-resolution.json"
    rows = paper_claims(found, read(path) if path.exists() else None)
    return markdown(["claim", "measured here", "holds"], [list(row) for row in rows])
