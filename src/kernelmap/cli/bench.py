def bench() -> None:
    """."""
