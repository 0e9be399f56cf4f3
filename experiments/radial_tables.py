"""Tables of the radial problem: the shipped models, noise, grids, speed, recipes."""

from math import exp, log

from measured import RESULTS, ROOT, markdown, part, read, three


def shipped() -> str:
    errors = read(ROOT / "src/kernelmap/models/nao-diverse/evaluation.json")["systems"]
    names = {"id": "ID: exp(-5r) sin 6r", "ood1": "OOD1: r(11-r) exp(-5r) sin 6r", "ood2": "OOD2: a Gaussian"}
    keys = ("operator_error_context", "operator_error_heldout", "kernel_error", "kernel_error_pooled")
    rows = [[names[name], *(f"{values[key]:.1%}" for key in keys)] for name, values in errors.items()]
    return markdown(["system", "f, context", "f, held out", "kernel", "kernel, pooled"], rows)


def bench() -> str:
    cases = read(RESULTS / "bench-attention.json")["cases"]
    rows = []
    for case in cases:
        ratio = "-" if case["ratio"] is None else f"{case['ratio']:.0f}"
        shape = [f"{case['n']}", f"{case['batch']}", case["dtype"], f"{case['threads']}"]
        rows.append([*shape, f"{1e3 * case['kernelmap_s']:.0f} ms", ratio, f"{case['peak_memory_gb']:.1f} GB"])
    return markdown(["N", "batch", "precision", "threads", "kernelmap", "times faster", "peak memory"], rows)


def kernels() -> str:
    tests = part("radial", "test")
    rows = [
        [
            f"`radial`, d = {d}",
            *three(tests[d]["systems"], "kernel_error"),
            *three(tests[d]["systems"], "coverage95", 0),
        ]
        for d in tests
    ]
    nao = read(ROOT / "src/kernelmap/models/nao-diverse/evaluation.json")["systems"]
    rows.append(["`nao-diverse`, d = 302", *three(nao, "kernel_error"), "-"])
    return markdown(["model", "kernel error", "coverage of the 95 % band"], rows)


def test_systems() -> str:
    rows = []
    for d, result in part("radial", "test").items():
        keys = ("kernel_error", "kernel_error_pooled", "operator_error_context", "operator_error_heldout", "coverage95")
        rows.append([d, *(cell for key in keys for cell in three(result["systems"], key))])
    return markdown(["d", "kernel", "kernel, pooled", "f, context", "f, held out", "coverage"], rows)


def left_out() -> str:
    rows = []
    for d, systems in part("radial", "left-out").items():
        cells = []
        for some in (list(systems.values())[:10], list(systems.values())[10:]):
            error = exp(sum(log(values["kernel_error"]) for values in some) / len(some))
            covered = [values["coverage95"] for values in some]
            cells += [f"{100 * error:.2f}", f"{100 * sum(covered) / len(covered):.1f}", f"{100 * min(covered):.0f}"]
        rows.append([d, *cells])
    sides = [f"{name}, {side}" for side in ("unlike training", "between") for name in ("error", "coverage", "lowest")]
    return markdown(["d", *sides], rows)


def retrained() -> str:
    result = part("radial", "retrained")
    rows = []
    for d in (302, 100, 50, 30):
        sides = [result[f"{who} {d}"] for who in ("shipped", "retrained")]
        tests = [" / ".join(f"{100 * side[name]:.2f}" for name in ("id", "ood1", "ood2")) for side in sides]
        rows.append([f"{d}", *tests, *(f"{100 * side['unrelated']:.2f}" for side in sides)])
    return markdown(["d", "shipped", "retrained", "shipped, unlike training", "retrained, unlike training"], rows)


def coverage() -> str:
    rows = []
    for d, systems in part("radial", "coverage").items():
        covered = [values["coverage95"] for values in systems.values()]
        errors = sorted(values["kernel_error"] for values in systems.values())
        median = errors[len(errors) // 2]
        low = min(systems, key=lambda name: systems[name]["coverage95"])
        rows.append(
            [d, f"{100 * sum(covered) / len(covered):.1f}", f"{100 * min(covered):.0f} ({low})", f"{100 * median:.2f}"]
        )
    return markdown(["d", "coverage, mean", "lowest", "kernel error, median"], rows)


def noise() -> str:
    rows = []
    table = part("radial", "noise")
    for level, d in dict.fromkeys(tuple(key.split()[:2]) for key in table):
        systems = {name: table[f"{level} {d} {name}"] for name in ("id", "ood1", "ood2")}
        cells = [
            three(systems, who)[0] if who in systems["id"] else "-" for who in ("posterior", "dartr", "tikhonov", "nao")
        ]
        rows.append([f"{float(level):.0%}", d, *cells, *three(systems, "coverage95", 0)])
    return markdown(["noise", "d", "posterior", "DARTR", "Tikhonov", "NAO", "coverage"], rows)


def grids() -> str:
    found = part("radial", "grids")
    rows = []
    for label, values in found.items():
        name, d = label.split()
        growth = [value / found[f"dx {d}"][system] for system, value in values.items()]
        shown = [
            " / ".join(f"{number:.2f}" for number in numbers)
            for numbers in ([100 * v for v in values.values()], growth)
        ]
        rows.append([name, d, *shown])
    return markdown(["grid", "d", "kernel error", "times that at dx"], rows)


def spacings() -> str:
    found = part("radial", "spacings")
    rows = []
    for dx in dict.fromkeys(label.split()[0] for label in found):
        cells = [found[f"{dx} {d}"] for d in (302, 50)]
        shown = [
            text
            for cell in cells
            for text in (
                f"{100 * cell['kernel_error']:.2f}",
                f"{100 * cell['lowest_coverage95']:.0f} ({cell['lowest_at']})",
            )
        ]
        rows.append([dx, *shown])
    return markdown(["spacing", "kernel error, d = 302", "lowest coverage", "d = 50", "lowest coverage"], rows)


def nao_mean() -> str:
    result = part("radial", "nao-mean")
    return markdown(["kernel", "error"], [[who, *three(result, who)] for who in ("nao", "conditioned", "posterior")])


def speed() -> str:
    rows = []
    for case in read(RESULTS / "bench-discover.json")["cases"]:
        ratio = "-" if case["ratio"] is None else f"{case['ratio']:.1f}"
        times = [f"{1e3 * case['posterior_s']:.0f} ms", f"{case['over_bare']:.1f}", ratio]
        sizes = [f"{case[name]}" for name in ("n", "d", "threads")]
        rows.append([*sizes, *times, f"{case['peak_memory_gb']:.2f} GB"])
    return markdown(
        ["N", "d", "threads", "posterior", "times the bare algebra", "times faster than DARTR", "peak memory"], rows
    )


def recipes() -> str:
    rows = []
    for path in sorted((RESULTS / "recipes").glob("*.json"), key=lambda path: read(path)["seconds"]):
        result = read(path)
        id_, ood1 = result["systems"]["id"], result["systems"]["ood1"]
        errors = [id_["operator_error_context"], ood1["operator_error_context"]]
        errors += [id_["operator_error_heldout"], ood1["operator_error_heldout"]]
        errors += [id_["kernel_error"], ood1["kernel_error"], id_["kernel_error_pooled"], ood1["kernel_error_pooled"]]
        cells = [f"{100 * a:.2f} / {100 * b:.2f}" for a, b in zip(errors[::2], errors[1::2], strict=True)]
        rows.append([f"`{path.stem}`", f"{result['epochs']}", f"{result['seconds'] / 60:.1f}", *cells])
    return markdown(["recipe", "epochs", "minutes", "f, context", "f, held out", "kernel", "kernel, pooled"], rows)
