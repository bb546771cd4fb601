"""Names for addresses."""

from .letters import plain
from .slug import slug

__all__ = ["plain", "slug"]
