"""How good a map is on systems it has not seen."""

from kernelmap.evaluation.calibration import Calibration, calibrate
from kernelmap.evaluation.evaluate import Estimated, Focus, errors, estimate, evaluate
from kernelmap.evaluation.microstructure import Microstructure, far_mass, microstructure

__all__ = [
    "Calibration",
    "Estimated",
    "Focus",
    "Microstructure",
    "calibrate",
    "errors",
    "estimate",
    "evaluate",
    "far_mass",
    "microstructure",
]
