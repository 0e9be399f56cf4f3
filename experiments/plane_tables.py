"""Tables of flow through porous media and of specimens."""

from measured import RESULTS, markdown, part, read

from kernelmap.paper.tables.text import MISSING


def fields() -> str:
    """What the shipped models of fields find: predictions for new inputs, and the medium behind the pairs."""
    quiet, noisy = part("darcy", "test"), part("darcy", "noise")
    flows = {
        "`darcy`, 20 pairs": quiet["p-to-g 20 seed 0"],
        "`darcy`, 20 pairs, 10 % noise": noisy["0.1 20"],
    }
    rows = [
        [
            name,
            _percent(found["operator_error_heldout"]),
            f"phase of {_percent(found['microstructure_accuracy'])} of nodes",
        ]
        for name, found in flows.items()
    ]
    specimens = part("mechanics", "noise")
    for level, name in {"0.0": "`mechanics`, 40 pairs", "0.05": "`mechanics`, 40 pairs, 5 % noise"}.items():
        found = specimens[level]
        medium = f"modulus to {found['decades']:.2f} decades, {_percent(found['coverage95'])} in its 95 % band"
        rows.append([name, _percent(found["operator_error_heldout"]), medium])
    return markdown(["model", "prediction, held out", "medium"], rows)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def noisy_pressure() -> str:
    """Both models that take such fields; the largest and the smallest error of the media."""
    found = part("own_problems", "pressure")
    levels = ("0", "0.001", "0.01")
    rows = []
    for model in ("darcy", "integral"):
        errors = [found[f"{model}, noise {level}"] for level in levels]
        rows.append([f"`{model}`", *(f"{100 * min(each):.2g} to {100 * max(each):.2g} %" for each in errors)])
    return markdown(["model", "no noise", "0.1 %", "1 %"], rows)


def darcy(case: str) -> str:
    keys = {
        "operator_error_heldout": 4,
        "kernel_error": 4,
        "coverage95": 1,
        "microstructure_accuracy": 2,
        "far_mass": 4,
    }
    rows = []
    for name, values in part("darcy", case).items():
        cells = [MISSING if values.get(key) is None else f"{100 * values[key]:.{n}f}" for key, n in keys.items()]
        rows.append([name, *cells])
    return markdown(["case, d", "f, held out", "kernel", "coverage", "phases", "far"], rows)


def darcy_bench() -> str:
    rows = []
    for case in read(RESULTS / "bench-darcy.json")["cases"]:
        faster = MISSING if case["times_faster"] is None else f"{case['times_faster']:.1f}"
        rows.append([f"{case['n']}", case["form"], f"{case['seconds']:.2f}", faster, f"{case['peak_memory_gb']:.1f}"])
    return markdown(["n", "form", "seconds", "times faster", "GB"], rows)


def nao_mesh() -> str:
    keys = ("operator_error_context", "operator_error_heldout")
    parts = part("darcy", "nao-mesh-20") | part("darcy", "nao-mesh-50")
    rows = [[name, *(f"{100 * found[key]:.2f}" for key in keys)] for name, found in parts.items()]
    return markdown(["nodes in each direction", "f, context", "f, held out"], rows)


def nao_microstructure() -> str:
    rows = [[name, f"{100 * share:.1f}"] for name, share in part("darcy", "nao-microstructure").items()]
    return markdown(["read off NAO's kernel", "phases"], rows)


def released() -> str:
    """The authors' checkpoints: difference to their own outputs, errors on our systems."""
    rows = []
    for name, found in part("darcy", "released").items():
        keys = ("operator_error_context", "operator_error_joint", "operator_error_heldout", "operator_error_scaled")
        errors = [f"{100 * found[key]:.0f}" if found[key] > 1 else f"{100 * found[key]:.1f}" for key in keys]
        rows.append([f"`{name}`", f"{found['d']}", f"{found['difference']:.1e}", *errors])
    headings = [
        "checkpoint",
        "d",
        "difference to its output",
        "f, context",
        "jointly",
        "f, held out",
        "with one factor",
    ]
    return markdown(headings, rows)


def darcy_tokens() -> str:
    results = part("darcy", "b-to-p")
    return markdown(
        ["input", "d = 20", "d = 50"], [[k, *(f"{100 * v:.2f}" for v in e.values())] for k, e in results.items()]
    )


def mechanics() -> str:
    result = read(RESULTS / "bench-mechanics.json")
    rows = [[c["solver"], c["elements"], f"{c['solves']}", f"{c['ms_per_solve']:.0f} ms"] for c in result["cases"]]
    rows[0].append(f"{result['ratio']:.0f}")
    rows[1].append("1")
    return markdown(["solver", "elements", "solves", "core time per solve", "times faster"], rows)


def mechanics_errors() -> str:
    """The posterior's errors, and the floor of the same specimens."""
    floors = part("mechanics", "floor")
    rows = []
    for case, found in part("mechanics", "test").items():
        split, d = case.split()
        mean = found["systems"]["test"]
        cells = [f"{100 * mean[key]:.2f}" for key in ("operator_error_context", "operator_error_heldout")]
        floor = [floors[split][name]["floor"] for name in found["specimens"]] if split in floors else []
        cells.append(f"{100 * sum(floor) / len(floor):.2f}" if floor else MISSING)
        rows.append([f"{split.upper()}, d = {d}", f"{len(found['specimens'])}", *cells])
    return markdown(["split", "specimens", "u, context", "u, held out", "floor"], rows)


def mechanics_floor() -> str:
    rows = [
        [name, *(f"{100 * found[key]:.2f}" for key in ("at_rest", "least_squares", "floor"))]
        for specimens in part("mechanics", "floor").values()
        for name, found in specimens.items()
    ]
    return markdown(["specimen", "linearised at rest", "least squares", "floor"], rows)


def mechanics_noise() -> str:
    rows = [
        [
            f"{float(level):.0%}",
            f"{100 * found['operator_error_heldout']:.2f}",
            f"{found['decades']:.3f}",
            f"{100 * found['coverage95']:.0f}",
        ]
        for level, found in part("mechanics", "noise").items()
    ]
    return markdown(["noise", "u, held out", "modulus, decades", "in its 95 % band"], rows)
