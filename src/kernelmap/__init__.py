"""kernelmap: from a few measured pairs (u, f) of an unseen physical system to its hidden kernel."""

from kernelmap.context import Context
from kernelmap.discovery import Discovery, discover
from kernelmap.errors import InputError
from kernelmap.grids import Grid
from kernelmap.kernel import Kernel
from kernelmap.model import load_model, save_model
from kernelmap.systems import SystemSet

__all__ = ["Context", "Discovery", "Grid", "InputError", "Kernel", "SystemSet", "discover", "load_model", "save_model"]
