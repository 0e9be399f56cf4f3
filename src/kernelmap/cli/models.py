"""`kernelmap models`: what is shipped."""

import tyro
from rich.console import Console
from rich.table import Table

from kernelmap.core.files import read_json
from kernelmap.io.models import load_model, shipped_directory, shipped_models
from kernelmap.maps import ProbabilisticMap


def run(words: list[str]) -> None:
    tyro.cli(models, prog="kernelmap models", args=words)


def models() -> None:
    """List the shipped models with their size, training data and known errors."""
    table = Table(title="Shipped models")
    for column in ("name", "map", "d", "parameters", "trained on", "held-out operator error", "kernel error"):
        table.add_column(column, no_wrap=column == "name")
    for name in shipped_models():
        model, about = load_model(name)
        path = shipped_directory() / name / "evaluation.json"
        errors = read_json(path)["systems"] if path.exists() else {}
        pairs = "any" if isinstance(model, ProbabilisticMap) else str(model.shape.d)
        held, kernel = (
            ", ".join(f"{system} {values[key]:.1%}" for system, values in errors.items() if values.get(key) is not None)
            for key in ("operator_error_heldout", "kernel_error")
        )
        trained = ", ".join(str(about[key]) for key in ("problem", "setting", "variant", "task") if key in about)
        table.add_row(name, type(model).__name__, pairs, str(model.parameter_count), trained, held, kernel)
    Console().print(table)
