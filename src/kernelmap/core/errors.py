"""The one exception of this package: input that cannot be used, and what to do about it."""


class InputError(ValueError):
    """What was expected, what came, and what to do. The command line prints it and exits with code 2."""
