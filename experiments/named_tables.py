"""Tables of laws that were named, and of measurements that were suggested."""

import numpy as np
from measured import markdown, part

NARROWED = {"random": "three at random", "suggested": "the three suggested"}


def laws() -> str:
    """Both runs of the kernels of known law: the law found first, and its parameters' errors."""
    rows = []
    for run in ("known", "fresh"):
        for name, found in part("laws", run).items():
            errors = ", ".join(f"{key} {value:+.1f}" for key, value in found["standardised_errors"].items())
            first = found["first"] if found["first"] == found["family"] else f"**{found['first']}**"
            over = f"{found['log_evidence_over_second']:.1f} / {found['log_evidence_over_no_law']:.1f}"
            rows.append([f"{name}, {run}", first, found["second"], over, errors])
    header = ["kernel", "first", "second", "log evidence over second / no law", "errors of parameters, in their std"]
    return markdown(header, rows)


def no_law() -> str:
    rows = [
        [name, found["first"], f"{found['log_evidence_over_no_law']:.0f}", "yes" if found["fits"] else "none fits"]
        for name, found in part("laws", "none").items()
    ]
    return markdown(["kernel", "nearest law", "log evidence over no law", "said to fit"], rows)


def suggestions() -> str:
    """Median, geometric mean and mean over systems of the band, relative to that before.

    In the geometric mean a band that doubles and one that is halved even out.
    """
    systems = part("suggestions", "narrowing").values()
    bands = {key: [s[key] / s["before"] for s in systems] for key in ("expected", "suggested")}
    bands["random"] = [np.mean(s["random"]) / s["before"] for s in systems]
    logs = {key: np.mean([np.mean(np.log(s[key] / np.asarray(s["before"]))) for s in systems]) for key in NARROWED}
    rows = []
    for name, over in (("median", np.median), ("mean", np.mean)):
        expected, suggested, random = (float(over(bands[key])) for key in ("expected", "suggested", "random"))
        rows += [
            [f"three at random, {name}", "-", f"{random:.3f}", f"{1 - random:.1%}"],
            [f"the three suggested, {name}", f"{expected:.3f}", f"{suggested:.3f}", f"{1 - suggested:.1%}"],
            [f"times as much, {name}", "", "", f"{(1 - suggested) / (1 - random):.2f}"],
        ]
    rows += [
        [f"{name}, geometric mean", "-", f"{np.exp(logs[key]):.3f}", f"{-logs[key]:.3f} in the logarithm"]
        for key, name in NARROWED.items()
    ]
    rows.append(["times as much, of the logarithm", "", "", f"{logs['suggested'] / logs['random']:.2f}"])
    return markdown(["measured", "band expected, of that before", "band found", "narrowed by"], rows)
