"""The functionals g[u] that make tokens of measured inputs."""

from kernelmap.operators.base import Operator
from kernelmap.operators.convolution import LAGS, Convolution, Lags
from kernelmap.operators.interaction import Interaction
from kernelmap.operators.radial import Radial, radial_tokens
from kernelmap.operators.sampled import SampledOperator

OPERATORS: dict[str, type[SampledOperator]] = {kind.name: kind for kind in (Radial, Convolution)}
"""Those on samples along a line, by what contexts call them."""

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
