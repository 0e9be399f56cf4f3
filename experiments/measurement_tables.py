"""The table of measurements as they are: outliers, an offset, errors in time, two inputs, groundwater."""

import numpy as np
from measured import markdown, part


def measurements() -> str:
    rows = [*outlier_rows(), *offset_rows(), *time_rows(), *input_rows(), *response_rows(), *groundwater_rows()]
    return markdown(["measured", "found"], rows)


def responses_prior() -> str:
    """Errors relative to those with the general prior."""
    systems = part("measurements", "world").values()
    rows = []
    for key, name in (("general", "the general prior"), ("responses", "that of responses in time")):
        ratios, inside = zip(
            *((s[key]["error"] / s["general"]["error"], s[key]["coverage"]) for s in systems), strict=True
        )
        few = sum(c < 0.8 for c in inside)
        mean = f"{np.exp(np.mean(np.log(ratios))):.2f} / {max(ratios):.2f}"
        rows.append([name, mean, f"{np.mean(inside):.1%}", f"{few} of {len(systems)}"])
    return markdown(["prior", "error, geometric mean / worst", "in the band", "below 80 % in the band"], rows)


def noise_on_u() -> str:
    """Errors relative to those with exact u; what was not covered or named."""
    found = part("noise-on-u", "levels-1") | part("noise-on-u", "levels-2")
    exact = part("noise-on-u", "exact")
    rows = []
    for level in ("1%", "5%") if found else ():
        for how in ("ignored", "given", "estimated"):
            systems = [(s[f"{level} {how}"], s["exact"]) for s in found.values()]
            ratios = [own["error"] / clean["error"] for own, clean in systems]
            bad = [r > 3 or own["coverage"] < 0.9 for r, (own, _) in zip(ratios, systems, strict=True)]
            silent = sum(wrong and not own["said"] for wrong, (own, _) in zip(bad, systems, strict=True))
            row = [
                f"{np.median(ratios):.2f} / {max(ratios):.3g}",
                f"{np.mean([own['coverage'] for own, _ in systems]):.0%}",
            ]
            said = sum(own["said"] for own, _ in systems)
            rows.append([f"{level} noise, {how}", *row, f"{sum(bad)}", f"{said}", f"{silent}"])
    if found:
        said = sum(s["exact"]["said"] for s in found.values())
        rows.append(
            ["exact u", "1", f"{np.mean([s['exact']['coverage'] for s in found.values()]):.0%}", "", f"{said}", ""]
        )
    if exact:
        named = f"{len(exact['said'])} of {exact['systems']}"
        rows.append(["no noise on u, systems of the simulated world", "", "", "", named, ""])
    header = [
        "u",
        "error, of that with exact u, median / worst",
        "in the band",
        "above 3 times, or below 90 % in the band",
    ]
    return markdown([*header, "said to be biased", "above and not said"], rows)


def outlier_rows() -> list[list[str]]:
    systems = list(part("measurements", "outliers").values())
    rows = []
    names = {"100": "one outlier of 100 standard deviations", "1e6": "one of 1e6", "ten": "ten wrong of a hundred"}
    for key, name in names.items() if systems else ():
        ratios = [s[key]["error"] / s["clean"]["error"] for s in systems]
        missed, false = (sum(s[key][what] for s in systems) for what in ("missed", "false"))
        said = f"{np.median(ratios):.2f} / {max(ratios):.2f}; {missed} of those above 10 not named, {false} clean named"
        rows.append([f"{name}: error, of that of clean data, median / worst of {len(systems)}", said])
    return rows


def offset_rows() -> list[list[str]]:
    systems = list(part("measurements", "offset").values())
    if not systems:
        return []
    asked, not_asked = (np.median([s[key] / s["clean"] for s in systems]) for key in ("found", "not_asked"))
    worst = max(s["found"] / s["clean"] for s in systems)
    off = ", ".join(f"{s['standardised']:+.1f}" for s in systems)
    return [
        ["offset of 0.3 rms, asked for: error, of that without one, median / worst", f"{asked:.2f} / {worst:.2f}"],
        ["the same, not asked for: median", f"{not_asked:.1f}"],
        ["the offset's own errors, in its standard deviations", off],
    ]


def time_rows() -> list[list[str]]:
    systems = list(part("measurements", "in-time").values())
    rows = []
    for key, name in (
        ("ar1", "AR(1) errors, τ = 10 samples, found"),
        ("white", "the same data, errors taken as white"),
    ):
        if systems:
            means = [np.mean([s[key][what] for s in systems]) for what in ("predictive_coverage", "kernel_coverage")]
            median = np.median([s[key]["error"] for s in systems])
            said = f"{means[0]:.1%} of new f, {means[1]:.1%} of the kernel; error {median:.1%}"
            rows.append([f"{name}: inside the 95 % band", said])
    return rows


def input_rows() -> list[list[str]]:
    found = part("measurements", "two-inputs")
    systems = [row for name, row in found.items() if name != "proportional"]
    rows = []
    for key in ("exponential", "gamma") if systems else ():
        errors, inside = ([s[key][what] for s in systems] for what in ("error", "coverage"))
        said = f"{np.median(errors):.1%} / {max(errors):.1%}; {np.mean(inside):.0%}"
        rows.append([f"two inputs, 200 samples, 3 % noise, {key}: error median / worst; in the band", said])
    if "proportional" in found:
        rows.append(["two inputs that are proportional", str(found["proportional"]["diagnostic"])])
    return rows


def response_rows() -> list[list[str]]:
    found = part("measurements", "responses")
    rows = []
    for name in ("exponential", "delayed Gamma", "damped cosine") if found else ():
        ratios = [s["kernel1d"] / s["gaussian_process"] for key, s in found.items() if key.startswith(name)]
        rows.append([f"{name}, 100 pairs, 1 % noise: error, of a Matérn process's, median", f"{np.median(ratios):.2f}"])
    return rows


def groundwater_rows() -> list[list[str]]:
    found = part("measurements", "groundwater")
    if not found:
        return []
    return [
        ["groundwater: R² of the second half, from every tenth head of the first", f"{found['r2']:.3f}"],
        ["its heads inside their 95 % band", f"{found['coverage']:.1%}"],
        ["its errors go on for", f"{found['error_time']:.0f} days"],
    ]


def groundwater_page() -> str:
    ours, theirs = part("gallery", "groundwater"), part("gallery", "pastas")
    rows = [
        ["kernelmap, `kernel1d`", str(ours["pairs"]), f"{ours['r2']:.3f}", f"{ours['coverage']:.1%}"],
        [f"pastas {theirs['version']}", str(theirs["pairs"]), f"{theirs['r2']:.3f}", "-"],
    ]
    return markdown(["", "heads used", "R² of the second half", "of it inside the 95 % band"], rows)


def green_page() -> str:
    rows = []
    for name, row in part("gallery", "green").items():
        errors = [f"{100 * row[key]:.2f}" for key in ("error", "classical")]
        rows.append([f"{name} pairs", *errors, f"{row['coverage']:.1%}"])
    return markdown(["equation, pairs", "error of K, percent", "DARTR's", "of K inside its 95 % band"], rows)
