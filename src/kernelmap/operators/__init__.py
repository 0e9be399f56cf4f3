"""The functionals g[u] that make tokens of measured inputs."""

from kernelmap.operators.radial import radial_tokens

__all__ = ["radial_tokens"]
