"""Probabilistic maps: a learned prior, conditioned on the pairs at hand."""

from kernelmap.posterior.elastic import MaterialPosteriorMap, MediumPosterior
from kernelmap.posterior.integral import (
    GenericIntegralMap,
    GenericIntegralOptions,
    GenericIntegralPosterior,
    IntegralPosterior,
    IntegralPosteriorMap,
)
from kernelmap.posterior.kernel1d import Kernel1dMap, Kernel1dOptions, Kernel1dPosterior
from kernelmap.posterior.pointwise import PointwisePosterior, pointwise
from kernelmap.posterior.stencil import (
    LocalOptions,
    LocalPosterior,
    LocalPosteriorMap,
    SolutionPosterior,
    SolutionPosteriorMap,
    StencilMap,
)

__all__ = [
    "GenericIntegralMap",
    "GenericIntegralOptions",
    "GenericIntegralPosterior",
    "IntegralPosterior",
    "IntegralPosteriorMap",
    "Kernel1dMap",
    "Kernel1dOptions",
    "Kernel1dPosterior",
    "LocalOptions",
    "LocalPosterior",
    "LocalPosteriorMap",
    "MaterialPosteriorMap",
    "MediumPosterior",
    "PointwisePosterior",
    "SolutionPosterior",
    "SolutionPosteriorMap",
    "StencilMap",
    "pointwise",
]
