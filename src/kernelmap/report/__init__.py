"""A discovery as a page to read and a figure to show."""

from kernelmap.report.figures import plot
from kernelmap.report.many import discover_files
from kernelmap.report.page import render, write_report
from kernelmap.report.results import discover_file, write_results

__all__ = ["discover_file", "discover_files", "plot", "render", "write_report", "write_results"]
