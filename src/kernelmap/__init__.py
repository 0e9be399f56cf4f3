"""kernelmap: from a few measured pairs (u, f) of an unseen physical system to its hidden kernel."""
