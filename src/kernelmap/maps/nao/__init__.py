"""The Nonlocal Attention Operator and its family."""

from kernelmap.maps.nao.discrete import DiscreteNAO
from kernelmap.maps.nao.model import NAO, NAOu
from kernelmap.maps.nao.options import Mixer, NAOOptions, Normaliser
from kernelmap.maps.nao.set_nao import SetNAO, SetNAOOptions
from kernelmap.maps.nao.softmax import SoftmaxNAO

__all__ = ["NAO", "DiscreteNAO", "Mixer", "NAOOptions", "NAOu", "Normaliser", "SetNAO", "SetNAOOptions", "SoftmaxNAO"]
