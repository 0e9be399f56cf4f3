"""The order-free NAO: linear attention whose weights treat all pairs alike."""

from kernelmap.maps.nao.set_nao.loss import OtherPairsLoss
from kernelmap.maps.nao.set_nao.model import SetNAO
from kernelmap.maps.nao.set_nao.options import SetNAOOptions

__all__ = ["OtherPairsLoss", "SetNAO", "SetNAOOptions"]
