"""What can be reproduced, by name."""

from collections.abc import Callable
from pathlib import Path

from kernelmap.paper.figures.darcy import figure_green, figure_microstructure
from kernelmap.paper.figures.mechanics import figure_stiffness
from kernelmap.paper.figures.radial import figure_kernels
from kernelmap.paper.tables.darcy import TABLE3
from kernelmap.paper.tables.mechanics import TABLE4
from kernelmap.paper.tables.radial import TABLE1, TABLE2
from kernelmap.paper.tables.rows import PaperTable

TABLES: dict[str, PaperTable] = {"table1": TABLE1, "table2": TABLE2, "table3": TABLE3, "table4": TABLE4}

FIGURES: dict[str, Callable[[Path], Path]] = {
    "figure-kernels": figure_kernels,
    "figure-green": figure_green,
    "figure-microstructure": figure_microstructure,
    "figure-stiffness": figure_stiffness,
}

CROSS_RESOLUTION = "cross-resolution"
