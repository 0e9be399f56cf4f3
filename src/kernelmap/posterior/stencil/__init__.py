"""Local operators on a mesh, and their inverses."""

from kernelmap.posterior.stencil.local import LocalPosteriorMap
from kernelmap.posterior.stencil.map import StencilMap
from kernelmap.posterior.stencil.posterior import LocalPosterior
from kernelmap.posterior.stencil.prior import LocalOptions
from kernelmap.posterior.stencil.solution import SolutionPosterior, SolutionPosteriorMap

__all__ = [
    "LocalOptions",
    "LocalPosterior",
    "LocalPosteriorMap",
    "SolutionPosterior",
    "SolutionPosteriorMap",
    "StencilMap",
]
