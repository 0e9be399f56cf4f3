"""What predicting takes of a fit, as arrays: the features that the mixture uses, and every component's Gaussians."""

from torch import Tensor

from kernelmap.core.grids import Grid
from kernelmap.core.state import prefixed, under
from kernelmap.posterior.kernel1d.components import Features
from kernelmap.posterior.kernel1d.errors import Density, ErrorShape
from kernelmap.posterior.kernel1d.evidence import Conditioned
from kernelmap.posterior.kernel1d.fit import Fit
from kernelmap.posterior.kernel1d.measured.correlation import Correlation
from kernelmap.posterior.kernel1d.measured.nuisance import OFFSET, TREND, Clock, Nuisance
from kernelmap.posterior.kernel1d.mixture import Mixture, MixtureComponent
from kernelmap.posterior.kernel1d.units import Units


def state_of(fit: Fit) -> dict[str, Tensor]:
    """Blocks of features under their numbers, components in their order."""
    mixture, units = fit.mixture, fit.units
    numbers = fit.kernel_squared.new_tensor
    state = {
        "units": numbers([units.length, units.u, units.f]),
        "kernel_squared": fit.kernel_squared,
        "log_evidence": numbers(mixture.log_evidence),
    }
    if (own := fit.nuisance) is not None:
        marks = numbers([name == TREND for name in own.names])
        state |= prefixed("nuisance", {"trend": marks, "clock": numbers(own.clock)})
        state |= prefixed("nuisance", {"tokens": own.tokens, "values": own.values, "S": own.S})
    if fit.correlation is not None:
        state["correlation"] = numbers(fit.correlation)
    state |= {f"block{number}": block for number, block in enumerate(mixture.features.blocks)}
    for i, (block, shape, given, _) in enumerate(mixture.components):
        errors = numbers([block, float(shape.n.mean()), shape.nugget, shape.least, shape.spread])
        state |= prefixed(f"cell{i}", {"errors": errors} | prefixed("given", given._asdict()))
    return state


def fit_of(state: dict[str, Tensor], y: Grid) -> Fit:
    """The fit on a grid in the user's units; the errors of single pairs, and their prior, are gone."""
    own = under(state, "")
    units = Units(*own["units"].tolist())
    blocks = [own[f"block{number}"] for number in range(sum(name.startswith("block") for name in own))]
    nothing = Density(own["units"][:0], own["units"][:0])
    components, i = [], 0
    while part := under(state, f"cell{i}"):
        block, n, nugget, least, spread = part["errors"].tolist()
        shape = ErrorShape(part["errors"].new_tensor([n]), nugget, least, 0.0, spread, nothing)
        components.append(MixtureComponent(int(block), shape, Conditioned(**under(part, "given"))))
        i += 1
    mixture = Mixture(Features(blocks, []), components, nothing.knots, float(own["log_evidence"]))
    correlation = Correlation(*own["correlation"].tolist()) if "correlation" in own else None
    return Fit(mixture, units, units.scaled(y), own["kernel_squared"], _nuisance(under(state, "nuisance")), correlation)


def _nuisance(state: dict[str, Tensor]) -> Nuisance | None:
    if not state:
        return None
    names = tuple(TREND if trend else OFFSET for trend in state["trend"].tolist())
    return Nuisance(names, Clock(*state["clock"].tolist()), state["tokens"], state["values"], state["S"])
