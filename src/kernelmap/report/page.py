"""The report: one HTML page that needs nothing else."""

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from torch import Tensor

from kernelmap.discovery import Discovery
from kernelmap.files import atomic_path
from kernelmap.report.diagnosis import identifiability_pictures
from kernelmap.report.figures import answer_pictures

NAMES = {
    "model": "Model",
    "model_sha256": "Model, SHA-256",
    "data_sha256": "Data, SHA-256",
    "version": "Version",
    "commit": "Commit",
}


def write_report(discovery: Discovery, path: Path | str, truth: Tensor | None = None) -> None:
    page = render(discovery, truth=truth)
    with atomic_path(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def render(discovery: Discovery, truth: Tensor | None = None) -> str:
    """The page, self-contained; the true kernel is drawn too where it is known."""
    environment = Environment(
        loader=PackageLoader("kernelmap.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja").render(
        headline=_headline(discovery),
        key_numbers=_key_numbers(discovery),
        cautions=discovery.cautions,
        answer=answer_pictures(discovery, truth),
        identifiability=identifiability_pictures(discovery),
        numbers=_numbers(discovery),
        origin=_origin(discovery),
        command=discovery.about.get("command"),
    )


def _headline(discovery: Discovery) -> str:
    found = f"{'A kernel' if discovery.hidden is None else 'A medium'} from {discovery.context.d} pairs"
    if discovery.heldout_error is None:
        return f"{found}, too few to keep some back and check it"
    return f"{found} that predicts unseen ones with {_percent(discovery.heldout_error)} error"


def _key_numbers(discovery: Discovery) -> list[tuple[str, str]]:
    always = [("pairs used", str(discovery.context.d)), ("estimated noise", _percent(discovery.noise))]
    if discovery.heldout is None:
        return always
    return [
        *always,
        ("error on held-out pairs", _percent(discovery.heldout_error)),
        ("of them inside their 95 % band", _percent(discovery.heldout_coverage)),
    ]


def _numbers(discovery: Discovery) -> list[tuple[str, str]]:
    found = discovery.identifiability
    return [
        ("Held-out error of the model", _percent(discovery.heldout_error)),
        ("Held-out error of the classical estimate (DARTR)", _percent(discovery.classical_error)),
        ("Held-out coverage of the 95 % band", _percent(discovery.heldout_coverage)),
        ("Estimated noise, share of the root mean square of f", _percent(discovery.noise)),
        ("Pairs used", str(discovery.context.d)),
        ("Pairs kept back", str(discovery.heldout.d if discovery.heldout else 0)),
        ("Effective rank of the data", f"{found.effective_rank:.1f}"),
        ("Directions of the kernel that stand out of the noise", str(found.determined)),
        ("Regularisation λ of the classical estimate", f"{discovery.classical.regularisation:.2e}"),
    ]


def _origin(discovery: Discovery) -> list[tuple[str, str]]:
    about = discovery.about
    keys = [key for key in NAMES if key in about] + [key for key in about if key not in (*NAMES, "command")]
    return [
        (NAMES.get(key, key.replace("_", " ").capitalize()), "unknown" if about[key] is None else str(about[key]))
        for key in keys
    ]


def _percent(share: float | None) -> str:
    """Three digits, and no exponent for anything one would say aloud."""
    return "not measured" if share is None else f"{float(f'{100 * share:.3g}'):g}\N{NO-BREAK SPACE}%"
