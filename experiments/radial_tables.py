"""Tables of the radial problem: the shipped models, noise, grids, speed, recipes."""

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
        [f"`{model}`, d = {d}", *three(found[model], "kernel_error"), *three(found[model], "coverage95", 0)]
        for d, found in tests.items()
        for model in ("radial", "kernel1d")
    ]
    nao = read(ROOT / "src/kernelmap/models/nao-diverse/evaluation.json")["systems"]
    rows.append(["`nao-diverse`, d = 302", *three(nao, "kernel_error"), "-"])
    return markdown(["model", "kernel error", "coverage of the 95 % band"], rows)


def test_systems(name: str) -> str:
    rows = []
    for d, found in part("radial", name).items():
        cells = [cell for model in ("radial", "kernel1d") for cell in three(found[model], "kernel_error")]
        cells += [cell for model in ("radial", "kernel1d") for cell in three(found[model], "coverage95", 0)]
        rows.append([d, *cells])
    return markdown(["d", "`radial`", "`kernel1d`", "coverage, `radial`", "coverage, `kernel1d`"], rows)


def own_use() -> str:
    before, after = (
        {row["group"]: row for row in read(path)["cases"]}
        if (path := RESULTS / f"own-use-{name}.json").exists()
        else {}
        for name in ("before", "after")
    )
    rows = []
    for group, old in before.items():
        new = after.get(group)
        cells = [
            f"{old['median']:.1f}",
            f"{old['median matern']:.1f}",
            f"{old['above 50']:.0f}",
            f"{old['coverage']:.0f}",
        ]
        cells += ["-"] * 5 if new is None else [f"{new[key]:.1f}" for key in NEW]
        rows.append([group, *cells])
    heads = ["`radial` before", "Matérn GP", "above 50 % before", "coverage before"]
    return markdown(["cell", *heads, "`kernel1d`", "above 50 %", "coverage", "silent", "false alarms"], rows)


LEVELS = ("0.5", "0.8", "0.95")

NEW = ("median", "above 50", "coverage", "silent", "false alarms")


def calibration() -> str:
    """Share of truths in central intervals."""
    names = {"calibration": "the world, any d", "prior-30": "the prior, d = 30", "prior-302": "the prior, d = 302"}
    rows = []
    for name, label in names.items():
        if (path := RESULTS / "kernel1d" / f"{name}.json").exists():
            found = read(path)
            rows.append([label, f"{found['systems']}", *(f"{value:.1%}" for value in found["coverage"].values())])
    for d in (30, 302):
        parts = [read(path)["results"] for path in sorted((RESULTS / "kernel1d" / "prior").glob(f"{d}-*.json"))]
        count = sum(found["systems"] for found in parts)
        means = [sum(found["systems"] * found["coverage"][level] for found in parts) / count for level in LEVELS]
        rows.append([f"the prior, d = {d}, noise 0.1 to 10 %", f"{count}", *(f"{value:.1%}" for value in means)])
    for name, label in (("jumps-30", "kernels with jumps"), ("smooth-30", "kernels without")):
        if found := part("kernel1d/prior", name):
            levels = (f"{value:.1%}" for value in found["coverage"].values())
            rows.append([f"of the prior, d = 30, {label} ({found['share']:.0%})", f"{found['systems']}", *levels])
    return markdown(["drawn from", "systems", "50 %", "80 %", "95 %"], rows)


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


def bars() -> str:
    """What `kernel1d` holds on units, repeats, a narrow peak, and sizes, beside what it was meant to."""

    def of(name: str) -> dict:
        return part("kernel1d/bars", name)

    rows = []
    if found := of("units"):
        rows.append(["kernel and band in other units, largest relative change", f"{max(found.values()):.0e}", "1e-6"])
    if found := of("repeats"):
        for name in ("own noise", "copied"):
            rows.append([f"coverage, every input measured 20 times, {name}", f"{found[name]:.1%}", "88 %"])
    for kind, found in of("peak").items():
        cells = [f"{min(found[key]):.2f} to {max(found[key]):.2f}" for key in ("error", "expected", "spike")]
        text = f"{cells[0]} % (expected {cells[1]}; largest value elsewhere {cells[2]} % of the peak)"
        rows.append([f"peak of width 0.1 at r = 6, 300 exact pairs, {kind}", text, "5 %"])
    sizes = {
        "discovery": ("N = 880, d = 302, with the check", "3 s"),
        "pairs": ("N = 440, d = 20 000, a file", "30 s, 2 GB"),
    }
    sizes["file"] = ("N = 4400, d = 20 000, a file", "180 s, twice the file")
    for name, (label, bar) in sizes.items():
        if found := of(name):
            memory = f", {found['peak_memory_gb']:.2f} GB" if "peak_memory_gb" in found else ""
            size = f" of {found['file_gb']:.2f} GB" if "file_gb" in found else ""
            rows.append([label + size, f"{found['seconds']:.1f} s{memory}", bar])
    return markdown(["what", "measured", "bar"], rows)
