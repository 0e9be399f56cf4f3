"""The one exception of this package: input that cannot be used, and what to do about it."""


class InputError(ValueError):
    """What was expected, what came, and what to do. The command line prints it and exits with code 2.

    mended: entries that would make the file right, where that is known, each as an expression of Python in which `d`
        holds the arrays of the file by their names.
    """

    def __init__(self, sentence: str, mended: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.mended = mended or {}

    def within(self, place: object) -> "InputError":
        """The same, with the file it happened in before the sentence."""
        sentence = str(self)
        return self if sentence.startswith(str(place)) else InputError(f"{place}: {sentence}", self.mended)
