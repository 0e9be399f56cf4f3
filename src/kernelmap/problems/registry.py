"""Problems by name."""

from kernelmap.core.registry import Registry
from kernelmap.problems.base import Problem

PROBLEMS: Registry[type[Problem]] = Registry("kernelmap.problems", "problem")
register = PROBLEMS.register
