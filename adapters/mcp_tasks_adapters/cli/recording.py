"""``--record FILE``: a recording on its way into a file."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from typing import Final

from mcp_tasks_adapters.toolkit.server import RecordFunction

__all__ = ["RECORD_BYTES", "RecordingError", "RecordingFile", "recording_into"]

RECORD_BYTES: Final = 256 * 1024 * 1024
"""The size of a recording, if nothing else is said."""

_log = logging.getLogger("mcp_tasks_adapters")


class RecordingError(Exception):
    """There can be no such file; the message says why, and what to do."""


class RecordingFile:
    """A new file for its owner alone, of ``most_bytes`` at most; a last line says why there is no more.

    Each line is with the system when the engine goes on, so that a process which is killed leaves all of them
    behind. An error, such as a full disk, ends the recording and is logged; whoever is recorded goes on.

    Raises :class:`RecordingError`, also for a file that is there already: a recording is one run from its
    beginning, and the one of the run before may be what somebody is looking for.
    """

    def __init__(self, path: str, *, most_bytes: int = RECORD_BYTES) -> None:
        # Every engine comes along: whoever does not record does without.
        from mcp_tasks_proto.testing.recordings import end_line

        self._path = path
        self._left = most_bytes
        self._limit_line = _line(end_line(f"its limit of {most_bytes} bytes was reached"))
        self._last_line = _line(end_line("the process has ended"))
        self._kept_free = max(len(self._limit_line), len(self._last_line))
        self._file: FileIO | None = _create(path)
        self._is_empty = True

    def take(self, line: str) -> bool:
        """Write a line; return whether there is room for more."""
        if self._file is None:
            return False
        data = _line(line)
        if len(data) + self._kept_free > self._left:
            self._write(self._limit_line)
            self._close()
            _log.warning("the recording has reached its limit, and ends")
            return False
        return self._write(data)

    def close(self) -> None:
        """End it. A file to which nothing was written is removed."""
        if self._file is None:
            return
        if self._is_empty:
            self._close()
            with suppress(OSError):  # somebody else may have been tidy
                os.unlink(self._path)
        else:
            self._write(self._last_line)
            self._close()

    def _write(self, data: bytes) -> bool:
        assert self._file is not None
        rest = memoryview(data)
        try:
            while rest:  # a disk that is nearly full takes a part
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self._close()
            _log.error("the recording cannot be written, and ends: %s", error.strerror)
            return False
        self._left -= len(data)
        self._is_empty = False
        return True

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # some file systems say only now what they could not write
                file.close()


def _create(path: str) -> FileIO:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise RecordingError(
            f"there is a {path} already, and a recording is one run from its beginning: name another file"
        ) from None
    except OSError as error:
        raise RecordingError(f"cannot write {path}: {error.strerror}") from None
    return FileIO(descriptor, "w")


def _line(text: str) -> bytes:
    return text.encode("ascii") + b"\n"


@contextmanager
def recording_into(path: str | None, *, most_bytes: int = RECORD_BYTES) -> Iterator[RecordFunction | None]:
    """Give what takes a recording, if there is to be one. Raises :class:`RecordingError`."""
    if path is None:
        yield None
        return
    file = RecordingFile(path, most_bytes=most_bytes)
    try:
        yield file.take
    finally:
        file.close()
