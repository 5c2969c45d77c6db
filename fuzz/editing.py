"""Changes to a text of a reader's own making, such as somebody makes who would like to forge one."""

from __future__ import annotations

from typing import Final

__all__ = ["edited"]

LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=~ \x00\n\xe9"


def edited(text: str, edits: bytes) -> str:
    """Return ``text`` with one change for each three bytes: what to do, where, and with which letter.

    To do are, by the first byte: ``A`` replace, ``B`` insert, ``C`` leave out, ``D`` end there.
    """
    for at in range(0, len(edits) - 2, 3):
        verb, place, letter = edits[at : at + 3]
        where = place * len(text) // 256
        before, after = text[:where], text[where + 1 :]
        new = LETTERS[letter % len(LETTERS)]
        match (verb - ord("A")) % 4:
            case 0:
                text = before + new + after
            case 1:
                text = before + new + text[where:]
            case 2:
                text = before + after
            case _:
                text = before
    return text
