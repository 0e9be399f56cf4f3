"""Users' files in, models and discoveries in and out."""

from kernelmap.io.discoveries import SavedDiscovery, load_discovery
from kernelmap.io.inputs import Candidates, read_candidates, read_inputs
from kernelmap.io.measurements import Measurements, read_measurements
from kernelmap.io.models import find_model, load_model, save_model, shipped_models
from kernelmap.io.placed import Inputs
from kernelmap.io.systems import read_systems

__all__ = [
    "Candidates",
    "Inputs",
    "Measurements",
    "SavedDiscovery",
    "find_model",
    "load_discovery",
    "load_model",
    "read_candidates",
    "read_inputs",
    "read_measurements",
    "read_systems",
    "save_model",
    "shipped_models",
]
