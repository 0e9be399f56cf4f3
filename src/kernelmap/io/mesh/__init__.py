"""Functions u and f on a uniform mesh of a line, a plane or space, whose kernel depends on the distance."""

from kernelmap.io.mesh.layout import mesh_context, mesh_inputs

__all__ = ["mesh_context", "mesh_inputs"]
