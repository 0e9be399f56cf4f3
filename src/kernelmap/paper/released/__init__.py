"""The authors' released checkpoints as models of this package."""

from kernelmap.paper.released.darcy import Moments, import_released_darcy
from kernelmap.paper.released.radial import import_released

__all__ = ["Moments", "import_released", "import_released_darcy"]
