"""The requests in flight: what each of them carries, and how long its answer may take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import define, field

from mcp_tasks_proto.errors import ErrorCode, ErrorObject
from mcp_tasks_proto.requester.calls import Sent, SentCall, SentListen
from mcp_tasks_proto.requester.effects import RequesterEffect, SendRequest, StopRequest
from mcp_tasks_proto.requester.settings import RequesterSettings
from mcp_tasks_proto.requester.tools import ToolList
from mcp_tasks_proto.timers import Timers, exponential_backoff
from mcp_tasks_proto.vocabulary import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from mcp_tasks_proto.wire.http import HeaderParameter, request_headers
from mcp_tasks_proto.wire.jsonrpc import request_message

__all__ = ["Requests", "backoff"]


def backoff(settings: RequesterSettings, failures: int) -> int:
    """Return how long to wait after this many failures in a row, in milliseconds; nothing after none."""
    if failures == 0:
        return 0
    limits = settings.limits
    return exponential_backoff(failures, limits.first_backoff_ms, limits.last_backoff_ms)


@define(eq=False, repr=False, kw_only=True)
class Requests:
    """What one requester has sent and awaits the answer of."""

    settings: RequesterSettings
    timers: Timers
    out: list[RequesterEffect]
    tools: ToolList
    names: Iterator[int]
    """What requests are called: rising numbers."""
    now: int = 0
    """The time of the input that is being handled."""
    declared: Mapping[str, Any] = field(init=False)
    """The capabilities that every request declares (NEG.4)."""
    _version: str = field(init=False)
    _in_flight: dict[int, Sent] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self.declared = self.settings.declared()
        self._version = self.settings.versions[0]

    def send(
        self, sent: Sent, method: str, params: Mapping[str, Any], *, meta: Mapping[str, Any] | None = None
    ) -> int:
        """Send a request; return its name."""
        name = next(self.names)
        carried = {
            **(meta or {}),
            PROTOCOL_VERSION: self._version,
            CLIENT_INFO: {"name": self.settings.name, "version": self.settings.version},
            CLIENT_CAPABILITIES: self.declared,
        }
        sent.name, sent.version, sent.since_ms = name, self._version, self.now
        self._in_flight[name] = sent
        self._set_timeout(sent)
        self.out.append(
            SendRequest(
                request=name,
                message=request_message(name, method, {**params, "_meta": carried}),
                parameters=self._mirrored(method, params),
                streams=isinstance(sent, SentListen),
            )
        )
        return name

    def check(self, method: str, params: Mapping[str, Any]) -> None:
        """Raise :class:`LocalProtocolError` for a request that no headers can be made for (HTTP.2)."""
        if self.settings.mirror_arguments:
            request_headers(method, params, self._version, self._mirrored(method, params))

    def _mirrored(self, method: str, params: Mapping[str, Any]) -> tuple[HeaderParameter, ...]:
        if method != "tools/call" or not self.settings.mirror_arguments:
            return ()
        return self.tools.parameters(params["name"])

    def get(self, name: int) -> Sent | None:
        """Return a request that is in flight; ``None``: it is not, or no more."""
        return self._in_flight.get(name)

    def end(self, name: int) -> Sent | None:
        """Forget a request, and return it: there is nothing more to expect of it."""
        self.timers.clear(("timeout", name))
        return self._in_flight.pop(name, None)

    def stop(self, name: int) -> None:
        """Give a request up."""
        self.end(name)
        self.out.append(StopRequest(name))

    def keep_alive(self, name: int) -> None:
        """Note a sign of life on the way to an answer. It counts for the caller's own requests only."""
        sent = self._in_flight.get(name)
        if isinstance(sent, SentCall):
            self._set_timeout(sent)

    def keep_open(self, sent: SentListen) -> None:
        """Let a listen stream stay open for as long as it likes."""
        self.timers.clear(("timeout", sent.name))

    def _set_timeout(self, sent: Sent) -> None:
        limits = self.settings.limits
        calls_tool = isinstance(sent, SentCall) and sent.call.tool is not None
        wait_ms = limits.call_timeout_ms if calls_tool else limits.request_timeout_ms
        self.timers.set(
            ("timeout", sent.name), min(self.now + wait_ms, sent.since_ms + limits.longest_call_ms)
        )

    def adopt_version(self, offered: Any) -> str | None:
        """Speak, from now on, the best version that both sides know (NEG.2); return it, if there is one."""
        for version in self.settings.versions:
            if isinstance(offered, list) and version in offered:
                self._version = version
                return version
        return None

    def adopt_offered(self, error: ErrorObject) -> str | None:
        """Speak the best version that an error says the server knows; return it, if there is one (NEG.2)."""
        if error.code != ErrorCode.UNSUPPORTED_PROTOCOL_VERSION or not isinstance(error.data, dict):
            return None
        return self.adopt_version(error.data.get("supported"))
