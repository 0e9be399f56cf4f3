"""A user's own HDF5, NPZ or MAT file as the context of one system (docs/your-data.md)."""

from kernelmap.reading.measurements import Measurements, read_measurements

__all__ = ["Measurements", "read_measurements"]
