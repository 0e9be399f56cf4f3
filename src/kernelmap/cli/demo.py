def demo() -> None:
    """."""
