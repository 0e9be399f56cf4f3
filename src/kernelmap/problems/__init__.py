"""Problems: families of systems to train on and to be tested against."""

from kernelmap.problems.base import Problem, TestData, TrainingData
from kernelmap.problems.registry import PROBLEMS, register

__all__ = ["PROBLEMS", "Problem", "TestData", "TrainingData", "register"]
