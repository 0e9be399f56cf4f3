"""What the paper concludes from its experiments, held against our records: yes or no, with the numbers."""

from typing import Any

from kernelmap.paper.tables.darcy import TABLE3
from kernelmap.paper.tables.radial import TABLE1, TABLE2
from kernelmap.paper.tables.rows import Row

Records = dict[str, dict[str, Any]]
Claim = tuple[str, str, str]
"""The claim, what we measured, and the answer: yes, no, or open while rows are missing."""


def claims(records: Records, resolution: dict[str, Any] | None) -> list[Claim]:
    return [
        as_accurate_as_printed(records),
        nao_beats_discrete(records),
        fewer_pairs_are_harder(records),
        diversity_helps_ood2(records),
        diversity_does_not_help_id(records),
        one_system_does_not_generalise(records),
        another_resolution(resolution),
        flow_as_accurate_as_printed(records),
    ]


def pooled(records: Records, name: str, system: str) -> float:
    """Kernel error as the paper has it, in percent."""
    return 100 * records[name]["systems"][system]["kernel_error_pooled"]


def judged(claim: str, seen: str, holds: bool | None) -> Claim:
    return claim, seen, "open" if holds is None else "yes" if holds else "no"


def as_accurate_as_printed(records: Records) -> Claim:
    """Where the model is meant to generalise: of a single training system the paper prints errors of 100 %."""
    rows = [row for row in (TABLE1.rows | TABLE2.rows).values() if row.map in ("nao", "discrete-nao")]
    ratios = {
        row.name: 100 * records[row.name]["systems"]["id"]["operator_error_context"] / row.printed.operator[0]
        for row in rows
        if row.name in records and row.printed is not None and not row.name.endswith("single")
    }
    worse = [f"{name} ({ratio:.1f} times)" for name, ratio in ratios.items() if ratio > 1.5]
    seen = f"{len(ratios) - len(worse)} of {len(ratios)} rows" + (f"; not {', '.join(worse)}" if worse else "")
    claim = "NAO and Discrete-NAO: ID operator errors within 1.5 times the printed ones"
    return judged(claim, seen, not worse if ratios else None)


def nao_beats_discrete(records: Records) -> Claim:
    claim = "NAO beats Discrete-NAO in kernel error"
    pairs = [(partner(row), row) for row in (TABLE1.rows | TABLE2.rows).values() if row.map == "nao"]
    both = [(a, b.name) for a, b in pairs if a in records and b.name in records]
    wins = [(a, b, s) for a, b in both for s in ("id", "ood1") if pooled(records, b, s) < pooled(records, a, s)]
    losses = [f"{b} on {s.upper()}" for a, b in both for s in ("id", "ood1") if (a, b, s) not in wins]
    seen = f"in {len(wins)} of {2 * len(both)} comparisons" + (f"; not {', '.join(losses)}" if losses else "")
    return judged(claim, seen, not losses if both else None)


def partner(row: Row) -> str:
    """The Discrete-NAO of the same setting."""
    return row.name.replace("nao-", "discrete-", 1)


def fewer_pairs_are_harder(records: Records) -> Claim:
    claim = "errors grow as d falls (302, 100, 50, 30)"
    names = [f"nao-{d}-10" for d in (302, 100, 50, 30)]
    if not all(name in records for name in names):
        return judged(claim, "", None)
    curves = {s: [pooled(records, name, s) for name in names] for s in ("id", "ood1")}
    seen = "; ".join(f"{s.upper()} {', '.join(f'{v:.1f}' for v in values)} %" for s, values in curves.items())
    return judged(claim, seen, all(values == sorted(values) for values in curves.values()))


def diversity_helps_ood2(records: Records) -> Claim:
    return compare_settings(records, "diverse training helps OOD2", "ood2", lambda sine, diverse: diverse < sine)


def diversity_does_not_help_id(records: Records) -> Claim:
    return compare_settings(records, "diverse training does not help ID", "id", lambda sine, diverse: diverse >= sine)


def compare_settings(records: Records, claim: str, system: str, holds: Any) -> Claim:
    found = []
    for dk in (10, 20, 40):
        names = f"nao-302-{dk}", f"nao-302-{dk}-diverse"
        if all(name in records for name in names):
            found.append((dk, *(pooled(records, name, system) for name in names)))
    seen = "; ".join(f"dk = {dk}: {sine:.1f} to {diverse:.1f} %" for dk, sine, diverse in found)
    return judged(claim, seen, all(holds(sine, diverse) for _, sine, diverse in found) if found else None)


def one_system_does_not_generalise(records: Records) -> Claim:
    names = [name for name in TABLE2.rows if name.endswith("single") and name in records]
    found = [pooled(records, name, system) for name in names for system in ("id", "ood1", "ood2")]
    seen = f"kernel errors {min(found):.0f} to {max(found):.0f} %" if found else ""
    return judged("a single training system does not generalise", seen, min(found) > 50 if found else None)


def another_resolution(resolution: dict[str, Any] | None) -> Claim:
    claim = "NAO carries over to twice the spacing, from the same pairs (d = 30: 22.65 to 20.79 % in the paper)"
    if resolution is None:
        return judged(claim, "", None)
    spacings = resolution["results"]["nao-30-10"]
    values = [100 * systems["id"]["kernel_error_pooled"] for systems in spacings.values()]
    seen = "; ".join(f"{label}: {value:.2f} %" for label, value in zip(spacings, values, strict=True))
    return judged(claim, seen, values[1] < 1.2 * values[0])


def flow_as_accurate_as_printed(records: Records) -> Claim:
    """In the form of W that trains best."""
    rows = [row for row in TABLE3.rows.values() if row.map == "nao" and row.printed and row.printed.operator]
    found = [
        (row, 100 * records[row.name]["systems"]["test"]["operator_error_context"], row.printed.operator[0])
        for row in rows
        if row.mixer == "spectral" and row.name in records and row.printed is not None
    ]
    seen = "; ".join(f"{row.name}: {ours:.2f} % ({printed:.2f} %)" for row, ours, printed in found)
    claim = "NAO on Darcy flow, W pointwise + spectral: context errors are at most the printed ones"
    return judged(claim, seen, all(ours <= printed for _, ours, printed in found) if found else None)
