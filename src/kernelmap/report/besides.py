"""What is found besides the kernel: offsets of f, outliers, what errors are like, Poisson's ratio; as rows."""

from kernelmap.discovery import Discovery
from kernelmap.report.drawing import unit


def besides(discovery: Discovery) -> list[tuple[str, list[str]]]:
    """What is in a row, and its lines."""
    estimate, of_f, of_t = discovery.posterior, unit(discovery, "f"), unit(discovery, "x", "t")
    units = {"offset": of_f, "trend": f"{of_f}/{of_t}" if of_f and of_t else ""}
    rows = [
        (f"{name} of f", [f"{value:.4g} ± {std:.2g} {units[name]}".rstrip()])
        for name, (value, std) in estimate.nuisance.items()
    ]
    if estimate.hidden is not None and "poisson_ratio" in estimate.hidden.constants:
        rows.append(("Poisson's ratio of the medium", [f"{estimate.hidden.constants['poisson_ratio']:.3f}"]))
    if estimate.outliers:
        named = [f"{discovery.context.name(pair)}: {size:+.0f}" for pair, size in estimate.outliers.items()]
        rows.append(("outliers, in standard deviations", named))
    if estimate.error_time:
        time = f"{estimate.error_time:.3g} {of_t or 'in the unit of t'}"
        rows.append(("errors go on for τ, exp(-|t - t'| / τ)", [time]))
    if estimate.through_kernel is not None:
        rows.append(("of the errors' variance from noise on u", [f"{estimate.through_kernel:.0%}"]))
    return rows
