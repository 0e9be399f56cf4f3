"""Benchmarks: each measures two ways of doing the same thing in one run, and reports their ratio."""
