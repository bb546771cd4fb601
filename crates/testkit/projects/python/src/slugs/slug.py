"""Titles become names."""

import re

from .letters import plain


def slug(title: str, longest: int = 40) -> str:
    """A name for an address, of at most that many letters, cut between words."""
    name = re.sub(r"[^a-z0-9]+", "-", plain(title)).strip("-")
    return name[:longest]
