"""The Python that repeats what was done in the app."""

from collections.abc import Mapping, Sequence

OPENING = """import torch

from kernelmap import discover, load_model, read_measurements, write_report
"""


def python_lines(name: str, model: str, entries: Mapping[str, str | float], left_out: Sequence[int]) -> str:
    """From the file to the report; law and suggestions are one call each, `found.closed_form()` among them."""
    given = f", {dict(entries)!r}" if entries else ""
    lines = [OPENING if left_out else OPENING.partition("\n\n")[2]]
    lines += [f"measured = read_measurements({name!r}{given})", "context = measured.context"]
    if left_out:
        lines.append(f"left_out = {list(left_out)}")
        lines.append("context = context.select(torch.tensor([j for j in range(context.d) if j not in left_out]))")
    lines.append(f"model = load_model({model!r})[0]")
    if model == "kernel1d":
        radius = "if not measured.has_radius:  # it is chosen by evidence"
        lines.append(f"{radius}\n    from kernelmap.discovery.radius import select_radius\n")
        lines.append("    context = select_radius(model, context).context")
    return "\n".join([*lines, "found = discover(model, context)", 'write_report(found, "report.html")\n'])
