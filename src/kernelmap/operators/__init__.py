"""The functionals g[u] that make tokens of measured inputs."""

from kernelmap.operators.base import Operator
from kernelmap.operators.convolution import LAGS, Convolution, Lags
from kernelmap.operators.interaction import Interaction
from kernelmap.operators.radial import Radial, radial_tokens
from kernelmap.operators.sampled import SampledOperator

OPERATORS: dict[str, type[Operator]] = {kind.name: kind for kind in (Radial, Convolution, Interaction)}
"""By name; contexts of other layouts have tokens without an operator of ours."""

__all__ = [
    "LAGS",
    "OPERATORS",
    "Convolution",
    "Interaction",
    "Lags",
    "Operator",
    "Radial",
    "SampledOperator",
    "radial_tokens",
]
