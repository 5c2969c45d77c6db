"""Which server a command talks to, and how it is named when a person is told what to type next."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from attrs import frozen

from mcp_tasks_adapters.cli.client.arguments import InputError
from mcp_tasks_adapters.cli.client.harmless import one_line
from mcp_tasks_adapters.cli.client.loops import Loop
from mcp_tasks_adapters.cli.recording import RecordingError, recording_into
from mcp_tasks_adapters.client import AnswerFunction, Client, TraceEntry
from mcp_tasks_adapters.client.driver import TraceFunction
from mcp_tasks_adapters.client.options import Options
from mcp_tasks_adapters.http_exchange import HttpAddress, check_headers
from mcp_tasks_adapters.toolkit.server import RecordFunction
from mcp_tasks_adapters.trust import trusting
from mcp_tasks_proto.legacy.messages import Era

__all__ = ["Place", "read_headers", "tracing"]

STDIO: Final = "stdio:"
"""Begins the endpoint of a server that its client starts; its command follows."""


@frozen
class Place:
    """One server, over HTTP or started here."""

    endpoint: str
    headers: Mapping[str, str]
    era: Era | None = None
    """What it is to be spoken to in; ``None``: it shows."""
    ca_file: str | None = None
    """The authorities to trust over ``https``; ``None``: those of the system."""

    @classmethod
    def of(
        cls, endpoint: str, headers: Mapping[str, str], era: Era | None = None, ca_file: str | None = None
    ) -> Place:
        """Check where a server is said to be. Raises :class:`InputError`."""
        if endpoint.startswith(STDIO):
            if headers:
                raise InputError("--header is for servers over HTTP.")
            if not _words(endpoint):
                raise InputError("--stdio needs the command that starts the server.")
            if ca_file is not None:
                raise InputError("--ca-file is for servers over HTTP.")
            return cls(endpoint, headers, era)
        try:
            if ca_file is not None:
                trusting(ca_file)
        except ValueError as error:
            raise InputError(f"--ca-file: {error}.") from None
        try:
            HttpAddress.parse(endpoint)
        except ValueError as error:
            raise InputError(f"{endpoint!r} is no server: {error}.") from None
        return cls(endpoint, headers, era, ca_file)

    @property
    def is_started_here(self) -> bool:
        """Whether the server lives no longer than the command that talks to it."""
        return self.endpoint.startswith(STDIO)

    @property
    def typed(self) -> str:
        """Itself as it is named on a command line."""
        command = self.endpoint.removeprefix(STDIO)
        named = command if self.is_started_here else self.endpoint
        quoted = shlex.quote(one_line(named, most=len(named)))
        return f"--stdio {quoted}" if self.is_started_here else quoted

    def words(self, task_id: str) -> str:
        """Return one of its tasks as it is named on a command line."""
        task = shlex.quote(one_line(task_id, most=len(task_id)))
        dashes = "-- " if task.startswith("--") else ""  # or it would be taken for an option
        options = "" if self.era is None else f"--era {self.era} "
        if self.ca_file is not None:
            options += f"--ca-file {shlex.quote(self.ca_file)} "
        if self.is_started_here:
            return f"{options}{self.typed} {dashes}{task}"
        return f"{options}{dashes}{self.typed} {task}"

    def connect(
        self,
        loop: Loop,
        *,
        answer: AnswerFunction | None,
        on_trace: TraceFunction | None,
        record: RecordFunction | None = None,
        stderr: int | None,
    ) -> AbstractAsyncContextManager[Client]:
        """Return a client of it; ``stderr`` is for a server that is started."""
        options = Options(
            answer=answer,
            on_trace=on_trace,
            record=record,
            era=self.era,
            name="mcp-tasks",
            version=_own_version(),
        )
        if self.is_started_here:
            return loop.connect_stdio(_words(self.endpoint), stderr=stderr, **options)
        context = None if self.ca_file is None else trusting(self.ca_file)
        return loop.connect(self.endpoint, headers=self.headers, ssl_context=context, **options)


def _own_version() -> str:
    try:
        return version("mcp-tasks-proto")
    except PackageNotFoundError:  # run from its sources
        return "0"


def _words(endpoint: str) -> Sequence[str]:
    try:
        return shlex.split(endpoint.removeprefix(STDIO))
    except ValueError as error:
        raise InputError(f"--stdio: {error}.") from None


def read_headers(lines: Sequence[str]) -> dict[str, str]:
    """Read ``Name: value`` lines. Raises :class:`InputError`."""
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise InputError("--header takes 'Name: value'.")  # what was given may be a secret
        headers[name.strip()] = value.strip()
    try:
        check_headers(headers.items())
    except ValueError as error:
        raise InputError(f"--header: {error}.") from None
    return headers


@contextmanager
def tracing(path: str | None) -> Iterator[TraceFunction | None]:
    """Give what writes everything on the wire into a file, one JSON object a line, for its owner to read.

    Raises :class:`InputError` for a file that cannot be written.
    """
    if path is None:
        yield None
        return
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise InputError(f"--trace: cannot write {path}: {error.strerror}.") from None
    with open(file, "w", encoding="utf-8") as stream:

        def write(entry: TraceEntry) -> None:
            stream.write(json.dumps(entry.to_json(), ensure_ascii=False) + "\n")
            stream.flush()

        yield write


@contextmanager
def recording(path: str | None) -> Iterator[RecordFunction | None]:
    """Give what records the engine into a new file. Raises :class:`InputError` where there can be none."""
    try:
        with recording_into(path) as record:
            yield record
    except RecordingError as error:
        raise InputError(f"--record: {error}.") from None
