"""Text from a server, made fit for a terminal.

A terminal obeys what is printed on it. A server's text could move the cursor over a question it asks, or hide
where a link leads; so whatever is not plain text is shown as an escape instead of being carried out.
"""

from __future__ import annotations

import json
import re
from typing import Final

__all__ = ["harmless", "one_line"]

_COMMANDS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but for tabs and newlines
    "\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"  # invisible ones, and those that turn text around
    "\u2028\u2029\U000e0000-\U000e007f]"  # other ends of lines, and tags
)
_SPACES: Final = re.compile(r"\s+")


def harmless(text: str) -> str:
    """Return ``text`` with everything spelled out that a terminal would obey, or not show."""
    return _COMMANDS.sub(_spelled_out, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Return ``text``, made harmless, on one line."""
    return harmless(_SPACES.sub(" ", text).strip())


def _spelled_out(match: re.Match[str]) -> str:
    """Return a character as JSON escapes it, so that JSON stays what it was."""
    return json.dumps(match[0])[1:-1] if match[0] != "\x7f" else "\\u007f"
