"""Commands about the paper: its tables and figures, the authors' checkpoints, and benchmarks."""
