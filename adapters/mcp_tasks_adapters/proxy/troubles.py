"""What is wrong with upstreams, for whoever runs the proxy: a line in the log when it changes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from re import compile as pattern
from time import monotonic
from typing import Final

from attrs import define

from mcp_tasks_proto.legacy.vocabulary import INITIALIZE
from mcp_tasks_proto.requester import Fault, RequestFailed, ResponseReceived

__all__ = ["LINES", "LINE_S", "Troubles", "Way"]

Way = tuple[str, str]
"""An upstream, and the name of the authorization there: empty, where it is the proxy's own."""

_log = logging.getLogger("mcp_tasks_adapters")

_REFUSES: Final = frozenset({401, 403})
_TROUBLES: Final = {
    **dict.fromkeys(_REFUSES, "does not take its credentials"),
    429: "takes no more requests for now",
}
_VERBS: Final = frozenset({"POST", "GET", "DELETE"})
"""In place of a method: what is sent is no request."""

LINES: Final = 20
"""So much is told of one upstream, one line after the other; then a line in ``LINE_S``."""
LINE_S: Final = 60.0


@define(eq=False)
class _Told:
    """What the log says of an upstream, and how many lines it may say yet."""

    trouble: str | None
    lines: float
    at_s: float

    def may_say(self, now_s: float) -> bool:
        """Whether there may be another line; it is counted."""
        self.lines = min(LINES, self.lines + (now_s - self.at_s) / LINE_S)
        self.at_s = now_s
        if self.lines < 1:
            return False
        self.lines -= 1
        return True


class Troubles:
    """Tells of each upstream that it does not answer, and that it does again.

    Upstreams go by the names of the configuration: no address is told, no id and no credential (SEC.2).
    Bounded by the upstreams and authorizations that a configuration has. One that fails and answers in turns
    fills no disk: how it stands is told with a later answer.
    """

    def __init__(self, now_s: Callable[[], float] = monotonic) -> None:
        self._now_s = now_s
        self._told: dict[Way, _Told] = {}

    def note(self, way: Way, method: str, fact: ResponseReceived | RequestFailed) -> None:
        """Take note of how a request was answered, or that it was not."""
        if isinstance(fact, ResponseReceived):
            if _says_nothing(method, fact):
                return
            trouble = _trouble(fact)
        elif fact.fault is Fault.CALLER:
            return  # what a caller has sent, and no transport can carry, says nothing of the upstream
        else:
            trouble = f"does not answer: {_without_names(fact.reason)}"
        told = self._told.get(way)
        if trouble == (None if told is None else told.trouble):
            return
        now_s = self._now_s()
        if told is None:
            told = self._told[way] = _Told(None, LINES, now_s)
        if told.may_say(now_s):
            told.trouble = trouble
            _log.warning("%s %s", _named(way), trouble or "answers again")

    def forget(self) -> None:
        """Forget what was told: the upstreams may be others from now on."""
        self._told.clear()


def _says_nothing(method: str, answer: ResponseReceived) -> bool:
    """Whether an upstream that is well may answer so, and one that is not as well."""
    if answer.message is not None or answer.http is None:
        return False
    if method in _VERBS or method.startswith("notifications/"):
        return answer.http.status < 300
    # So a server answers that does not speak this era, and one whose session has ended. Where both eras were
    # tried nobody there knows what is asked.
    may_be_well = answer.http.status in range(400, 500) and answer.http.status not in _TROUBLES
    return may_be_well and method != INITIALIZE


def _trouble(answer: ResponseReceived) -> str | None:
    if answer.http is None:
        return None
    status = answer.http.status
    if status in _REFUSES:
        return f"{_TROUBLES[status]}: HTTP {status}"
    if answer.message is not None:
        return None
    if status >= 500:
        return f"does not answer: HTTP {status}"
    if status in range(300, 400):
        return f"redirects, which is not followed: HTTP {status}"
    if status >= 400:
        return f"{_TROUBLES.get(status, 'is no server of MCP')}: HTTP {status}"
    return f"gives no answer that can be read: HTTP {status}"


_UNQUOTED: Final = pattern(r"""(?<!\w)(?:bytearray\()?b?['"]""")
"""Where something begins that is quoted. An apostrophe stands behind a letter."""


def _without_names(reason: str) -> str:
    """Leave out what TLS and the system add in quotation marks: host names, paths, what was sent."""
    quoted = _UNQUOTED.search(reason)
    return reason if quoted is None else reason[: quoted.start()].rstrip(" :,")


def _named(way: Way) -> str:
    upstream, authorization = way
    return f"upstream {upstream}" + (f", under the authorization {authorization}," if authorization else "")
