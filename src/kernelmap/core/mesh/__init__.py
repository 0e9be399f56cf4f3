"""Regular meshes: their lattice of nodes, and finite elements on their cells."""

from kernelmap.core.mesh.elements import Shape, quadrilateral, triangles
from kernelmap.core.mesh.lattice import Lattice

__all__ = ["Lattice", "Shape", "quadrilateral", "triangles"]
