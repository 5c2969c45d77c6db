"""How ``mcp-tasks demo`` shows what happens: for people, or one JSON object for each message."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, Final, Protocol

from rich.console import Console
from rich.json import JSON
from rich.text import Text

__all__ = ["JsonScreen", "RichScreen", "Screen"]

Headers = Sequence[tuple[str, str]]

TELLING_HEADERS: Final = ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id")
"""The others are those of any HTTP request."""
AS_BEFORE: Final = "(as before)"


class Screen(Protocol):
    """What the demo shows, in order."""

    def opening(self, url: str, loop: str, proxy: str | None = None) -> None:
        """The server runs, and perhaps a proxy before it."""

    def chapter(self, title: str) -> None:
        """The next part of the story begins."""

    def request(self, headline: str, path: str, headers: Headers, message: dict[str, Any]) -> None:
        """A message is about to be sent."""

    def response(self, status: int, message: dict[str, Any] | None, notices: Sequence[str]) -> None:
        """Its answer came, or that there is none to it; ``notices`` are worth noticing in it."""

    def heard(self, message: dict[str, Any]) -> None:
        """The server says or asks something on the way to its answer."""

    def event(self, what: str) -> None:
        """Something happens that is no message."""

    def closing(self) -> None:
        """All went as expected, and what ran has ended."""

    def failed(self, reason: str) -> None:
        """Something was not as expected."""


class RichScreen:
    """Shows it to a person."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._chapters = 0
        self._shown_meta: list[Any] = []
        self._last_request: dict[str, Any] = {}

    def opening(self, url: str, loop: str, proxy: str | None = None) -> None:
        self._line(Text("A server runs on "), Text(loop, "bold"), Text(" at "), Text(url, "bold"))
        if proxy is not None:
            self._line(Text("A proxy before it runs at "), Text(proxy, "bold"))
        self._line(Text("A client talks to it: every message, and what to notice in it (✓: checked)."))

    def chapter(self, title: str) -> None:
        self._chapters += 1
        self._console.print()
        self._console.rule(f"[bold]{self._chapters}. {title}[/]", align="left")

    def request(self, headline: str, path: str, headers: Headers, message: dict[str, Any]) -> None:
        self._console.print()
        self._line(Text("→ ", "bold cyan"), Text(_name(message), "bold cyan"), Text(f"  {headline}"))
        shown = "  ".join(f"{name}: {value}" for name, value in headers if name in TELLING_HEADERS)
        self._line(Text(f"  POST {path}  {shown}", "dim"))
        if {**message, "id": None} == {**self._last_request, "id": None}:
            self._line(Text(f"    (the same message, with id {message['id']})", "dim"))
        else:
            self._json(self._shortened(message, "params"))
        self._last_request = message

    def response(self, status: int, message: dict[str, Any] | None, notices: Sequence[str]) -> None:
        self._line(
            Text("← ", "bold green"), Text(f"HTTP {status}", "bold green"), Text(f"  {_summary(message)}")
        )
        if message is not None:
            self._json(self._shortened(message, "result"))
        for notice in notices:
            self._line(Text("  ✓ ", "bold green"), Text(notice, "italic"))

    def heard(self, message: dict[str, Any]) -> None:
        self._line(Text("← ", "bold green"), Text(_name(message), "bold green"), Text("  on the stream"))
        self._json(message)

    def event(self, what: str) -> None:
        self._console.print()
        self._line(Text("⚡ ", "bold yellow"), Text(what, "bold yellow"))

    def closing(self) -> None:
        self._console.print()
        self._console.rule(align="left")
        self._line(Text("✓ ", "bold green"), Text("All as it should be. What ran was told to end, and did."))

    def failed(self, reason: str) -> None:
        self._console.print()
        self._line(Text("✗ Not as it should be: ", "bold red"), Text(reason))

    def _line(self, *parts: Text) -> None:
        self._console.print(Text.assemble(*parts), soft_wrap=True)

    def _json(self, message: dict[str, Any]) -> None:
        for line in JSON(json.dumps(message, ensure_ascii=False), indent=2).text.split("\n"):
            self._line(Text("    "), line)

    def _shortened(self, message: dict[str, Any], member: str) -> dict[str, Any]:
        """Leave out a ``_meta`` that was shown before: it is the same on every message, and long."""
        body = message.get(member)
        if not isinstance(body, dict) or "_meta" not in body:
            return message
        if body["_meta"] in self._shown_meta:
            return {**message, member: {**body, "_meta": AS_BEFORE}}
        self._shown_meta.append(body["_meta"])
        return message


class JsonScreen:
    """Shows it to a program: one line, one message."""

    def __init__(self) -> None:
        self._chapter = ""

    def opening(self, url: str, loop: str, proxy: str | None = None) -> None:
        """Say nothing: it is no message."""

    def chapter(self, title: str) -> None:
        self._chapter = title

    def request(self, headline: str, path: str, headers: Headers, message: dict[str, Any]) -> None:
        self._print(direction="request", headline=headline, path=path, headers=dict(headers), message=message)

    def response(self, status: int, message: dict[str, Any] | None, notices: Sequence[str]) -> None:
        self._print(
            direction="response", headline=_summary(message), status=status, message=message, notices=notices
        )

    def heard(self, message: dict[str, Any]) -> None:
        self._print(direction="stream", headline=_name(message), message=message)

    def event(self, what: str) -> None:
        self._print(direction="none", headline=what)

    def closing(self) -> None:
        """Say nothing: the exit code does."""

    def failed(self, reason: str) -> None:
        print(f"Not as it should be: {reason}", file=sys.stderr)

    def _print(self, **members: Any) -> None:
        print(json.dumps({"chapter": self._chapter, **members}, ensure_ascii=False), flush=True)


def _name(message: dict[str, Any]) -> str:
    """Say what somebody sends."""
    return str(message.get("method", "response"))


def _summary(message: dict[str, Any] | None) -> str:
    """Say in a few words what an answer is."""
    if message is None:
        return "taken"
    result = message.get("result")
    if not isinstance(result, dict):
        return f"error {message.get('error', {}).get('code')}"
    described = {"resultType": "result", **result.get("task", result)}
    words = [described[name] for name in ("resultType", "status", "statusMessage") if name in described]
    return ", ".join(map(str, words))
