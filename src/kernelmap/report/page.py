"""The report: one HTML page that needs nothing else."""

from math import isnan
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from torch import Tensor

from kernelmap.core.files import atomic_path
from kernelmap.discovery import Discovery
from kernelmap.report.besides import besides
from kernelmap.report.figures import answer_pictures, kernel_figure
from kernelmap.report.identifiability import identifiability_pictures

NAMES = {
    "model": "Model",
    "model_sha256": "Model, SHA-256",
    "data_sha256": "Data, SHA-256",
    "version": "Version",
    "commit": "Commit",
}

SMALLEST = 1e-5
"""Of a share, that is told by a number."""

MOST_LAWS, LEAST_PROBABILITY = 4, 0.001


def write_report(
    discovery: Discovery, path: Path | str, truth: Tensor | None = None, figure: Any | None = None
) -> None:
    page = render(discovery, truth, figure)
    with atomic_path(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def render(discovery: Discovery, truth: Tensor | None = None, figure: Any | None = None) -> str:
    """The page, self-contained; the true kernel is drawn too where it is known. `figure`: of the kernel, if drawn."""
    environment = Environment(
        loader=PackageLoader("kernelmap.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja").render(
        headline=_headline(discovery),
        key_numbers=key_numbers(discovery),
        diagnostics=discovery.diagnostics,
        answer=answer_pictures(discovery, figure or kernel_figure(discovery, truth)),
        identifiability=identifiability_pictures(discovery),
        laws=_laws(discovery),
        suggestions=_suggestions(discovery),
        numbers=_numbers(discovery),
        origin=_origin(discovery),
        command=discovery.about.get("command"),
    )


def _headline(discovery: Discovery) -> str:
    expected = discovery.identifiability.expected_error
    what = "A kernel," if discovery.hidden is None else "A medium, its kernel"
    known = f"{what} known to about {percent(expected)}," if expected < 1 else f"{what} hardly known,"
    kernel = known if discovery.has_band else "A kernel without error bar"
    found = f"{kernel} from {discovery.context.d} pairs"
    if discovery.check is None:
        return f"{found}, {'too few' if discovery.has_band else 'none left'} to keep some back and check it"
    return f"{found} that predicts unseen ones with {percent(discovery.check.error)} error"


def key_numbers(discovery: Discovery) -> list[tuple[str, str]]:
    """What one would say first: names and numbers."""
    noise = "estimated noise" if discovery.has_band else "not explained of f"
    always = [("pairs used", str(discovery.context.d)), (noise, percent(discovery.noise))]
    if discovery.has_band:
        always.append(("expected error of the kernel", percent(discovery.identifiability.expected_error)))
    if (check := discovery.check) is None:
        return always
    return [
        *always,
        ("error on held-out pairs", percent(check.error)),
        ("of them inside their 95 % interval", percent(check.coverage)),
    ]


def _numbers(discovery: Discovery) -> list[tuple[str, str]]:
    found, check = discovery.identifiability, discovery.check
    return [
        ("Expected error of the kernel, by its own posterior, in L²(ρ)", percent(found.expected_error)),
        ("Held-out error of the model", percent(check and check.error)),
        ("Held-out error of the classical estimate (DARTR)", percent(check and check.classical_error)),
        ("Held-out coverage of the 95 % interval", percent(check and check.coverage)),
        (
            "Estimated noise, relative to the root mean square of f"
            if discovery.has_band
            else "Not explained of the pairs used, relative to the root mean square of f",
            percent(discovery.noise),
        ),
        *[(f"{name[0].upper()}{name[1:]}", "; ".join(lines)) for name, lines in besides(discovery)],
        ("Pairs used", str(discovery.context.d)),
        ("Pairs kept back", str(check.heldout.d if check else 0)),
        ("Effective rank of the data", f"{found.effective_rank:.1f}"),
        ("Directions of the kernel that stand out of the noise", _count(found.informed_directions)),
        *[
            (f"Standardised residual of {discovery.context.name(residual.pair)}", f"{residual.size:+.1f}")
            for residual in discovery.residuals
        ],
        ("Regularisation λ of the classical estimate", f"{discovery.classical.regularisation:.2e}"),
    ]


def _laws(discovery: Discovery) -> list[tuple[str, str]]:
    """The likeliest laws, and how likely each is."""
    if discovery.law is None:
        return []
    shown = [law for law in discovery.law.laws if law.probability > LEAST_PROBABILITY][:MOST_LAWS]
    rows = [(f"{law.family}, {percent(law.probability)}", str(law)) for law in shown]
    if discovery.law.best is None:
        rows.insert(0, ("none fits", "A kernel without a law explains the pairs better than every law that was tried."))
    return rows


def _suggestions(discovery: Discovery) -> list[tuple[str, str]]:
    if discovery.next is None:
        return []
    now = discovery.next.band
    return [
        (f"{number}. {suggestion.name}", f"narrows the mean band to {percent(suggestion.band / now)} of today's")
        for number, suggestion in enumerate(discovery.next.suggestions, 1)
    ]


def _origin(discovery: Discovery) -> list[tuple[str, str]]:
    about = discovery.about
    keys = [key for key in NAMES if key in about] + [key for key in about if key not in (*NAMES, "command")]
    return [
        (NAMES.get(key, key.replace("_", " ").capitalize()), "unknown" if about[key] is None else _told(about[key]))
        for key in keys
    ]


def _told(value: Any) -> str:
    return ", ".join(f"{name} = {of}" for name, of in value.items()) if isinstance(value, dict) else str(value)


def _count(number: int | None) -> str:
    return "not measured" if number is None else str(number)


def percent(share: float | None) -> str:
    """Three digits, and no exponent for anything one would say aloud."""
    if share is None or isnan(share):
        return "not measured"
    if 0 < share < SMALLEST:
        return f"< {100 * SMALLEST:g}\N{NO-BREAK SPACE}%"
    return f"{float(f'{100 * share:.3g}'):g}\N{NO-BREAK SPACE}%"
