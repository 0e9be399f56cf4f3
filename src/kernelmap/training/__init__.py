"""Training a kernel map over many systems, on pairs alone."""
