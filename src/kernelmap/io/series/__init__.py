"""Time series: inputs u and responses f in time, whose kernel is the response to an impulse."""

from kernelmap.io.series.inputs import series_inputs
from kernelmap.io.series.layout import series_context
from kernelmap.io.series.table import read_table

__all__ = ["read_table", "series_context", "series_inputs"]
