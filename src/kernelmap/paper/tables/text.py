"""The paper's tables from the records of their rows, with the paper's figures beside ours."""

from collections.abc import Sequence
from typing import Any

from kernelmap.paper.tables.rows import PaperTable, Row

HEADINGS = (
    "model",
    "parameters",
    "f, context",
    "paper",
    "f, held out",
    "kernel, pooled",
    "paper",
    "kernel, each",
    "minutes",
)
RESOLUTION_HEADINGS = ("model", "system", "spacing", "kernel, pooled", "kernel, each", "f, held out")
MISSING = "-"

Blocks = list[tuple[str, list[list[str]]]]
"""Headings, each with the cells of its rows."""


def cells(table: PaperTable, records: dict[str, dict[str, Any]]) -> Blocks:
    """Block by block, the cells of each row under `HEADINGS`; errors in percent, one per test system."""
    return [
        (block.heading, [row_cells(row, table.systems, records.get(row.name)) for row in block.rows])
        for block in table.blocks
    ]


def row_cells(row: Row, systems: tuple[str, ...], record: dict[str, Any] | None) -> list[str]:
    label = row.label
    printed = (
        (None, (), ()) if row.printed is None else (row.printed.parameters, row.printed.operator, row.printed.kernel)
    )
    paper = [percent(values[: len(systems)]) for values in printed[1:]]
    if record is None:
        return [label, counts(None, printed[0]), MISSING, paper[0], MISSING, MISSING, paper[1], MISSING, MISSING]
    keys = ("operator_error_context", "operator_error_heldout", "kernel_error_pooled", "kernel_error")
    ours = [percent([record["systems"][name][key] for name in systems], 100) for key in keys]
    minutes = f"{record['seconds'] / 60:.1f}" if "seconds" in record else MISSING
    size = counts(record["parameters"], printed[0])
    return [label, size, ours[0], paper[0], ours[1], ours[2], paper[1], ours[3], minutes]


def percent(values: Sequence[float | None], scale: float = 1) -> str:
    """Values times the scale; missing ones are left out."""
    found = [scale * value for value in values if value is not None]
    return " / ".join(f"{value:.2f}" if value < 100 else f"{value:.0f}" for value in found) or MISSING


def counts(ours: int | None, paper: int | None) -> str:
    own = f"{ours}" if ours else MISSING
    return own if paper in (None, ours) else f"{own} ({paper})"


def resolution_cells(made: dict[str, Any]) -> list[list[str]]:
    """Under `RESOLUTION_HEADINGS`."""
    keys = ("kernel_error_pooled", "kernel_error", "operator_error_heldout")
    return [
        [name, system, label, *(percent([errors[system][key]], 100) for key in keys)]
        for name, spacings in made["results"].items()
        for system in ("id", "ood1")
        for label, errors in spacings.items()
    ]
