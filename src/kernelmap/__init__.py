"""kernelmap: from a few measured pairs (u, f) of an unseen physical system to its hidden kernel."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelmap.core import Context, Grid, InputError, Kernel, SystemSet, grids
    from kernelmap.discovery import Discovery, discover, discoveries
    from kernelmap.evaluation import evaluate
    from kernelmap.io import load_discovery, load_model, read_measurements, read_systems, save_model
    from kernelmap.report import write_report
    from kernelmap.training import Recipe, train

_PUBLIC = {
    "core": ("Context", "Grid", "InputError", "Kernel", "SystemSet", "grids"),
    "discovery": ("Discovery", "discover", "discoveries"),
    "evaluation": ("evaluate",),
    "io": ("load_discovery", "load_model", "read_measurements", "read_systems", "save_model"),
    "report": ("write_report",),
    "training": ("Recipe", "train"),
}

__all__ = [
    "Context",
    "Discovery",
    "Grid",
    "InputError",
    "Kernel",
    "Recipe",
    "SystemSet",
    "discover",
    "discoveries",
    "evaluate",
    "grids",
    "load_discovery",
    "load_model",
    "read_measurements",
    "read_systems",
    "save_model",
    "train",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are used: `kernelmap --help` need not wait for torch."""
    for package, names in _PUBLIC.items():
        if name in names:
            return getattr(import_module(f"kernelmap.{package}"), name)
    raise AttributeError(f"module 'kernelmap' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
