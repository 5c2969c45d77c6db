"""The dashboard itself: who asks, may they, and what they get.

Each request goes the same way: it is read, its caller is named by the proxy's own ``authenticate=``, and
:mod:`mcp_tasks_proto.history` decides what is shown and allowed (HIS.3). What only the original user may do
is then asked of the proxy's engine in that user's name, which checks all of it once more (PRX.7).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from itertools import count
from typing import Any, Final, Protocol

from attrs import define, frozen

from mcp_tasks_adapters.admission import Admission, Arrival, ChangingDoor
from mcp_tasks_adapters.dashboard.answers import (
    ENDED,
    FAILED,
    NOBODY_LIKE_THAT,
    NOT_ALLOWED,
    NOT_FOUND,
    STORE_UNAVAILABLE,
    Answer,
    of_engine,
    refusal,
)
from mcp_tasks_adapters.dashboard.requests import (
    PREFIX,
    AssignOne,
    ControlOne,
    ListProjects,
    ListSome,
    ProjectRequest,
    RefusedError,
    ShowOne,
    ShowProject,
    read_request,
    written_place,
)
from mcp_tasks_adapters.driver import Channel, Loop, RequestFacts
from mcp_tasks_adapters.proxy.callers import Caller, checked_caller
from mcp_tasks_adapters.proxy.members import KnowsProjects, Members
from mcp_tasks_adapters.proxy.storing import (
    AssignTask,
    EntriesRead,
    ProxyStoreEffect,
    ProxyStoreFact,
    ReadEntries,
    ReadEntry,
)
from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.history import (
    AccessReason,
    Action,
    TaskEntry,
    Viewer,
    control_request,
    decide_access,
    decide_project,
    project_page,
    task_page,
)
from mcp_tasks_proto.inputs import MessageReceived
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.proxy import Access, ProxySettings
from mcp_tasks_proto.wire.jsonrpc import Response, parse_message
from mcp_tasks_proto.wire.pages import PageHead

__all__ = ["Dashboard", "Engine", "ServedProxy"]

_log = logging.getLogger("mcp_tasks_adapters")


class ServedProxy(Protocol):
    """What a dashboard knows of its proxy's declaration."""

    @property
    def settings(self) -> ProxySettings: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def authenticate(self) -> Callable[[RequestFacts], Any] | None: ...
    @property
    def members(self) -> Members | None: ...


class Engine(Protocol):
    """What a dashboard asks of its proxy's driver."""

    def submit(self, effect: ProxyStoreEffect, answer: Callable[[ProxyStoreFact], None]) -> None:
        """Put an effect to the store, and have its answer."""

    def receive_from(self, message: Any, channel: Channel, *, principal: str | None, access: Access) -> int:
        """Take in the message of a caller who is known already."""


@define(eq=False)
class _Asked:
    """A request on its way."""

    request: ProjectRequest
    channel: Channel


class Dashboard:
    """Serves the projects of one proxy; everything here happens on the loop's thread.

    It is there for proxies with ``authenticate=`` and ``members=``: without both nobody may look at anything.
    """

    prefix: Final = PREFIX

    def __init__(self, proxy: ServedProxy, *, engine: Engine, loop: Loop) -> None:
        self._engine = engine
        self._loop = loop
        self._limits = proxy.limits
        self._door = ChangingDoor(principal=None, limits=proxy.settings.limits)
        self.change(proxy)
        self._admission = Admission(
            self._door, loop, admit=self._admitted, refuse=self._refused, named=self._named
        )
        self._tickets = count(1)
        self._asked: dict[Any, tuple[_Asked, Caller | None]] = {}

    @property
    def has_viewers(self) -> bool:
        """Whether there is anybody who may look at anything."""
        return self._members is not None and self._door.principal is not None

    # -- for the endpoint ----------------------------------------------------------------------------------

    def receive(
        self, head: PageHead, body: bytes | bytearray, channel: Channel, facts: RequestFacts | None
    ) -> None:
        """Take in a complete request; it is answered on its channel, now or later."""
        try:
            request = read_request(head, body, self._limits)
        except RefusedError as error:
            error.answer.send(channel)
            return
        ticket = next(self._tickets)
        self._asked[ticket] = _Asked(request, channel), None
        self._admission.ask(MessageReceived(exchange=ticket, message=None), facts)

    def change(self, proxy: ServedProxy) -> None:
        """Go on as another declaration has it, but for its ``limits``."""
        self._settings, self._members = proxy.settings, proxy.members
        self._door.principal, self._door.limits = proxy.authenticate, proxy.settings.limits

    def stop(self) -> None:
        """Give up those who are still to be named."""
        self._admission.cancel_all()
        self._asked.clear()

    # -- who asks ------------------------------------------------------------------------------------------

    def _named(self, received: Arrival, named: Any, _: Any) -> Arrival:
        caller = checked_caller(named)
        asked, _ = self._asked[received.exchange]
        self._asked[received.exchange] = asked, caller
        return received

    def _admitted(self, received: Arrival) -> None:
        asked, caller = self._asked.pop(received.exchange)
        assert caller is not None  # whoever is admitted was named
        self._guarded(asked.channel, partial(self._serve, asked, caller))

    def _refused(
        self,
        received: Arrival,
        error: ErrorObject,
        http_status: int,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        asked, _ = self._asked.pop(received.exchange)
        if http_status == HTTPStatus.UNAUTHORIZED:
            text = "Say who you are, as for any request to this proxy."
            refusal(http_status, "not_authorized", text, tuple(headers)).send(asked.channel)
        else:
            of_engine(error).send(asked.channel)

    def _guarded(self, channel: Channel, action: Callable[[], None]) -> None:
        """Do something; whoever asked is told when that fails."""
        try:
            action()
        except Exception as error:
            _log.error("a request of a dashboard could not be handled: %s", describe(error))
            FAILED.send(channel)

    # -- what they get -------------------------------------------------------------------------------------

    def _serve(self, asked: _Asked, caller: Caller) -> None:
        request = asked.request
        if isinstance(request, ListProjects):
            self._list_projects(caller, asked.channel)
            return
        viewer = self._viewer(caller, request.project)
        if viewer is None:
            NOT_FOUND.send(asked.channel)
        elif isinstance(request, ShowProject):
            self._show_project(caller, request.project, asked.channel)
        elif isinstance(request, ListSome):
            most = self._settings.limits.ledger_page_entries
            effect = ReadEntries(project=request.project, after=request.after, most=most, token=None)
            self._ask_store(effect, asked.channel, partial(self._list, request, most, viewer, asked.channel))
        else:
            found = partial(self._found, request, caller, viewer, asked.channel)
            self._ask_store(ReadEntry(request.handle, None), asked.channel, found)

    def _list_projects(self, caller: Caller, channel: Channel) -> None:
        members = self._members
        if isinstance(members, KnowsProjects):
            Answer(HTTPStatus.OK, {"projects": list(members.projects(caller))}).send(channel)
        else:
            NOT_FOUND.send(channel)

    def _show_project(self, caller: Caller, project: str, channel: Channel) -> None:
        members = self._members
        shown = members.project(caller, project) if isinstance(members, KnowsProjects) else None
        (NOT_FOUND if shown is None else Answer(HTTPStatus.OK, {"project": shown})).send(channel)

    def _viewer(self, caller: Caller, project: str) -> Viewer | None:
        """Return somebody who may look at the project."""
        viewer = None if self._members is None else self._members.viewer(caller, project)
        return viewer if viewer is not None and decide_project(viewer, project).allowed else None

    def _ask_store(
        self, effect: ProxyStoreEffect, channel: Channel, then: Callable[[Sequence[TaskEntry]], None]
    ) -> None:
        def answered(fact: ProxyStoreFact) -> None:
            if isinstance(fact, EntriesRead):
                self._guarded(channel, partial(then, fact.entries))
            else:
                STORE_UNAVAILABLE.send(channel)

        self._engine.submit(effect, answered)

    def _list(
        self,
        request: ListSome,
        asked_for: int,
        viewer: Viewer,
        channel: Channel,
        stretch: Sequence[TaskEntry],
    ) -> None:
        """Show a page of a stretch for which so many entries were asked."""
        page = project_page(
            stretch,
            viewer,
            project=request.project,
            view=request.view,
            assigned=request.assigned,
            most=request.most,
            is_last=len(stretch) < asked_for,
            retention=self._settings.retention,
            now=self._loop.now_ms(),
        )
        body: dict[str, Any] = {"tasks": list(page.rows)}
        if page.after is not None:
            body["nextCursor"] = written_place(page.after)
        Answer(HTTPStatus.OK, body).send(channel)

    def _found(
        self,
        request: ShowOne | AssignOne | ControlOne,
        caller: Caller,
        viewer: Viewer,
        channel: Channel,
        entries: Sequence[TaskEntry],
    ) -> None:
        """Go on with the task that is asked about, if it is one of the project's that may be seen."""
        page = self._page(request.project, viewer, entries)
        if page is None:
            NOT_FOUND.send(channel)
            return
        (entry,) = entries
        match request:
            case ShowOne():
                Answer(HTTPStatus.OK, {"task": page}).send(channel)
            case AssignOne():
                self._assign(request, entry, viewer, channel)
            case ControlOne():
                self._control(request, entry, caller, viewer, channel)

    def _page(self, project: str, viewer: Viewer, entries: Sequence[TaskEntry]) -> Mapping[str, Any] | None:
        """Return one task as it is shown; ``None``: there is nothing to be seen in this project."""
        if not entries or entries[0].project != project:
            return None
        now = self._loop.now_ms()
        return task_page(entries[0], viewer, retention=self._settings.retention, now=now)

    def _decide(self, entry: TaskEntry, viewer: Viewer, action: Action) -> Answer | None:
        """Return why not; ``None``: the viewer may."""
        decision = decide_access(entry, viewer, action, self._settings.retention, self._loop.now_ms())
        if decision.allowed:
            return None
        return ENDED if decision.reason is AccessReason.ENDED else NOT_ALLOWED

    # -- assignment ----------------------------------------------------------------------------------------

    def _assign(self, request: AssignOne, entry: TaskEntry, viewer: Viewer, channel: Channel) -> None:
        denied = self._decide(entry, viewer, Action.ASSIGN)
        if denied is None and request.assignee is not None:
            assignee = self._viewer(Caller(request.assignee, Access()), request.project)
            denied = NOBODY_LIKE_THAT if assignee is None else None
        if denied is not None:
            denied.send(channel)
            return
        effect = AssignTask(
            handle=entry.handle,
            actor=viewer.principal,
            assignee=request.assignee,
            now_ms=self._loop.now_ms(),
            token=None,
        )
        self._ask_store(effect, channel, partial(self._assigned, request, viewer, channel))

    def _assigned(
        self, request: AssignOne, viewer: Viewer, channel: Channel, entries: Sequence[TaskEntry]
    ) -> None:
        page = self._page(request.project, viewer, entries)
        (NOT_FOUND if page is None else Answer(HTTPStatus.OK, {"task": page})).send(channel)

    # -- what only the original user may ---------------------------------------------------------------------

    def _control(
        self, request: ControlOne, entry: TaskEntry, caller: Caller, viewer: Viewer, channel: Channel
    ) -> None:
        denied, members = self._decide(entry, viewer, request.action), self._members
        access = None if denied or members is None else members.access(caller, request.project)
        if access is None:
            (denied or NOT_ALLOWED).send(channel)
            return
        version = self._settings.versions[0]
        message = control_request(entry, request.action, version=version, responses=request.responses)
        self._engine.receive_from(
            message, _Control(request.action, channel), principal=caller.principal, access=access
        )


@frozen
class _Control:
    """The channel of a request in the original user's name: the engine's reply becomes an answer."""

    action: Action
    channel: Channel

    def reply(
        self,
        message: dict[str, Any] | None,
        http_status: int,
        headers: Sequence[tuple[str, str]] = (),
        event_id: str | None = None,
    ) -> None:
        """Answer."""
        response = parse_message(message)
        if not isinstance(response, Response):
            FAILED.send(self.channel)
        elif response.error is not None:
            of_engine(response.error).send(self.channel)
        elif self.action is Action.READ_PAYLOAD:
            view = {name: value for name, value in (response.result or {}).items() if name not in _ENVELOPE}
            Answer(HTTPStatus.OK, {"task": view}).send(self.channel)
        else:
            Answer(HTTPStatus.ACCEPTED, {}).send(self.channel)

    def send(self, message: dict[str, Any], event_id: str | None = None) -> None:
        """There is nothing on the way to these answers."""

    def open(self) -> None:
        """Nor a stream."""


_ENVELOPE: Final = frozenset({"_meta", "resultType"})
