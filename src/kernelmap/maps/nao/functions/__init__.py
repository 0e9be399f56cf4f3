"""Learned functions of position. Those of two points, W(x, z), mix the tokens z into the rows x of a kernel."""

from kernelmap.maps.nao.functions.base import TwoPointFunction
from kernelmap.maps.nao.functions.convolution import Convolution
from kernelmap.maps.nao.functions.network import GridFunction, NetworkFunction, integral
from kernelmap.maps.nao.functions.spectral import SpectralFunction

__all__ = ["Convolution", "GridFunction", "NetworkFunction", "SpectralFunction", "TwoPointFunction", "integral"]
