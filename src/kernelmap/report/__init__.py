"""A discovery as a page to read and a figure to show."""

from kernelmap.report.figures import plot
from kernelmap.report.page import render, write_report

__all__ = ["plot", "render", "write_report"]
