"""Text from a server, made fit for a terminal.

A terminal obeys what is printed on it. A server's text could move the cursor over a question it asks, or hide
where a link leads; so whatever is not plain text is shown as an escape instead of being carried out.
"""

from __future__ import annotations

import json
import re
from typing import Final

__all__ = ["cut", "harmless", "one_line"]

LINE_CHARS: Final = 2_000
"""The most that is shown of a name or a sentence of a server, which may be megabytes long."""

_COMMANDS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but for tabs and newlines
    "\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"  # invisible ones, and those that turn text around
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufff0-\ufffb"  # and more of these
    "\u2028\u2029\U000e0000-\U000e0fff]"  # other ends of lines, and tags
)
_SPACES: Final = re.compile(r"\s+")


def harmless(text: str) -> str:
    """Return ``text`` with everything spelled out that a terminal would obey, or not show."""
    return _COMMANDS.sub(_spelled_out, text.replace("\r\n", "\n"))


def one_line(text: str, most: int = LINE_CHARS) -> str:
    """Return ``text``, made harmless, on one line, and cut where it has more characters than ``most``."""
    return harmless(cut(_SPACES.sub(" ", text[: 2 * most]).strip(), most))


def cut(text: str, most: int) -> str:
    """Return ``text``, or its beginning where it has more characters than ``most``."""
    return text if len(text) <= most else f"{text[:most]}…"


def _spelled_out(match: re.Match[str]) -> str:
    """Return a character as JSON escapes it, so that JSON stays what it was."""
    return json.dumps(match[0])[1:-1] if match[0] != "\x7f" else "\\u007f"
