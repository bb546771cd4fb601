"""Letters without their marks."""

import unicodedata


def plain(text: str) -> str:
    """The text in plain small letters: "Ü" becomes "u"."""
    apart = unicodedata.normalize("NFKD", text)
    return apart.encode("ascii", "ignore").decode().lower()
