"""Elastic media: responses by way of the stiffnesses of their cells."""

from kernelmap.posterior.elastic.map import MaterialPosteriorMap
from kernelmap.posterior.elastic.posterior import MediumPosterior

__all__ = ["MaterialPosteriorMap", "MediumPosterior"]
