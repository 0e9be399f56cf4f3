"""Text from outside (names of files, entries, systems) as a terminal and a file in UTF-8 can show it."""

import unicodedata

HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Control characters, marks that turn the direction of text, halves of characters, line separators."""


def shown(text: str) -> str:
    """With escapes such as \\x1b for what would act on a terminal, be invisible or be no character at all."""
    return "".join(_escape(c) if unicodedata.category(c) in HIDDEN and c != "\n" else c for c in text)


def encodable(text: str) -> str:
    """With escapes for bytes of file names that are no UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def say(sentence: str) -> None:
    """A sentence on standard output, as it is: no markup, no emoji, nothing that acts on the terminal."""
    from rich.console import Console

    Console(emoji=False).print(shown(sentence), markup=False, soft_wrap=True)
