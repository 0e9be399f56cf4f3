"""The paper: its tables, figures and claims, benchmarks, and the authors' checkpoints."""
