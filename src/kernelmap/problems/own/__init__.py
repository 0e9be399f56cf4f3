"""A user's own systems, from a file."""

from kernelmap.problems.own.problem import Own

__all__ = ["Own"]
