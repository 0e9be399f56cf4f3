"""`kernelmap models`: what is shipped."""

from rich.console import Console
from rich.table import Table

from kernelmap.files import read_json
from kernelmap.maps import BandedMap
from kernelmap.model import load_model, shipped_directory, shipped_models


def models() -> None:
    """List the shipped models with their size, training data and known errors."""
    table = Table(title="Shipped models")
    for column in ("name", "map", "d", "parameters", "trained on", "held-out operator error", "kernel error"):
        table.add_column(column, no_wrap=column == "name")
    for name in shipped_models():
        model, about = load_model(name)
        errors = read_json(shipped_directory() / name / "evaluation.json")["systems"]
        pairs = "any" if isinstance(model, BandedMap) else str(model.shape.d)
        held, kernel = (
            ", ".join(f"{system} {values[key]:.1%}" for system, values in errors.items() if values[key] is not None)
            for key in ("operator_error_heldout", "kernel_error")
        )
        trained = ", ".join(str(about[key]) for key in ("problem", "setting", "variant", "task") if key in about)
        table.add_row(name, type(model).__name__, pairs, str(model.parameter_count), trained, held, kernel)
    Console().print(table)
