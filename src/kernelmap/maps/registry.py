"""Kernel maps by name."""

from kernelmap.core.registry import Registry
from kernelmap.maps.base import KernelMap

MAPS: Registry[type[KernelMap]] = Registry("kernelmap.maps", "map")
register = MAPS.register
