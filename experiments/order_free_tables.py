"""Tables of the order-free NAO and its exact limit."""

from typing import Any

from measured import RESULTS, markdown, part, read

from kernelmap.paper.tables.text import MISSING

COLUMNS = {
    "context": "f, context",
    "heldout": "f, held out",
    "kernel": "kernel",
    "kernel_coverage": "kernels in band",
    "kernel_std_over_error": "std / error",
    "prediction_coverage": "predictions in band",
    "prediction_std_over_error": "std / error ",
}


def table(*names: str) -> str:
    """One row for every model and d of some parts; errors and coverages in percent."""
    rows = []
    for model, found in (each for name in names for each in part("order_free", name).items()):
        for d, values in found.items():
            if isinstance(values, dict) and d.startswith("d = "):
                rows.append([model, d.removeprefix("d = "), *(_cell(values.get(key)) for key in COLUMNS)])
    return markdown(["", "d", *COLUMNS.values()], rows)


def depth() -> str:
    """Held-out error, a row for every number of layers."""
    found = part("order_free", "depth")
    counts = list(next(iter(found.values()), {}))
    rows = [
        [name.removeprefix("layers "), *(_cell(each[d]["heldout"]) for d in counts)] for name, each in found.items()
    ]
    return markdown(["layers", *counts], rows)


def cost() -> str:
    """Of a context and of a training step, a row for every map and size."""
    maps = ["set-nao", "integral-posterior", "nao"]
    rows = [
        [
            case["map"],
            *(str(case[key]) for key in ("N", "d")),
            *(_cell(case[key]) for key in ("context_ms", "times_products", "step_ms", "peak_memory_gb")),
        ]
        for case in sorted(read(RESULTS / "bench-order-free.json")["cases"], key=lambda case: maps.index(case["map"]))
    ]
    return markdown(["", "N", "d", "ms per context", "times the bare products", "ms per step", "GB"], rows)


def _cell(value: Any) -> str:
    return MISSING if value is None else f"{value:.3g}"
