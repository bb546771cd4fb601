"""Letters without their marks."""


def plain(text: str) -> str:
    """The text in plain small letters: "Ü" becomes "u"."""
    return text.encode("ascii", "ignore").decode().lower()
