"""What a dashboard may ask for, and how that is written as a method, a path, a query and a body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from http import HTTPStatus
from re import compile as pattern
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote

from attrs import frozen

from mcp_tasks_adapters.dashboard.answers import CANNOT_BE_READ, NOT_FOUND, Answer, refusal
from mcp_tasks_proto.errors import RemoteProtocolError
from mcp_tasks_proto.history import Action, Assigned, Place, ProjectView
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.http import is_json
from mcp_tasks_proto.wire.jsonrpc import decode
from mcp_tasks_proto.wire.pages import PageHead

__all__ = [
    "PREFIX",
    "AssignOne",
    "ControlOne",
    "ListProjects",
    "ListSome",
    "ProjectRequest",
    "RefusedError",
    "ShowOne",
    "ShowProject",
    "read_request",
    "written_place",
]

PREFIX: Final = "/projects/"
"""What all paths begin with."""

USUAL_ROWS: Final = 50
MOST_ROWS: Final = 200
"""Rows on one page."""
NAME_CHARS: Final = 256
"""The longest assignee."""


class RefusedError(Exception):
    """A request that is none; ``answer`` says why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


# -- what may be asked for -----------------------------------------------------------------------------------


@frozen
class ListProjects:
    """The projects that somebody may look at."""


@frozen(kw_only=True)
class ShowProject:
    """One project with its members."""

    project: str


@frozen(kw_only=True)
class ListSome:
    """A page of a project's list."""

    project: str
    view: ProjectView = ProjectView.ALL
    assigned: Assigned = Assigned.ANY
    most: int = USUAL_ROWS
    after: Place | None = None


@frozen(kw_only=True)
class ShowOne:
    """One task with its timeline."""

    project: str
    handle: str


@frozen(kw_only=True)
class AssignOne:
    """That a task is somebody's, or with ``None`` nobody's."""

    project: str
    handle: str
    assignee: str | None


@frozen(kw_only=True)
class ControlOne:
    """What only the original user may: see what a task holds, answer it, cancel it."""

    project: str
    handle: str
    action: Action
    responses: Mapping[str, Any] | None = None
    """To input requests, by their keys; ``None``: it is no answer."""


ProjectRequest = ListProjects | ShowProject | ListSome | ShowOne | AssignOne | ControlOne


# -- how it is written ---------------------------------------------------------------------------------------


def read_request(head: PageHead, body: bytes | bytearray, limits: Limits) -> ProjectRequest:
    """Read a request. Raises :class:`RefusedError` for one that is none, whoever asks.

    ::

        GET    /projects/
        GET    /projects/PROJECT
        GET    /projects/PROJECT/tasks?view=&assigned=&limit=&cursor=
        GET    /projects/PROJECT/tasks/TASK
        PUT    /projects/PROJECT/tasks/TASK/assignee   {"assignee": NAME}
        DELETE /projects/PROJECT/tasks/TASK/assignee
        GET    /projects/PROJECT/tasks/TASK/payload
        POST   /projects/PROJECT/tasks/TASK/answers    {"inputResponses": {KEY: RESPONSE}}
        POST   /projects/PROJECT/tasks/TASK/cancel
    """
    match _parts(head.path):
        case [""]:
            _allow(head.method, "GET")
            return ListProjects()
        case [project]:
            _allow(head.method, "GET")
            return ShowProject(project=project)
        case [project, "tasks"]:
            _allow(head.method, "GET")
            return _read_list(project, head.query)
        case [project, "tasks", handle]:
            _allow(head.method, "GET")
            return ShowOne(project=project, handle=handle)
        case [project, "tasks", handle, "assignee"]:
            _allow(head.method, "PUT", "DELETE")
            assignee = None if head.method == "DELETE" else _read_assignee(_read_body(head, body, limits))
            return AssignOne(project=project, handle=handle, assignee=assignee)
        case [project, "tasks", handle, "payload"]:
            _allow(head.method, "GET")
            return ControlOne(project=project, handle=handle, action=Action.READ_PAYLOAD)
        case [project, "tasks", handle, "answers"]:
            _allow(head.method, "POST")
            responses = _read_answers(_read_body(head, body, limits))
            return ControlOne(project=project, handle=handle, action=Action.ANSWER, responses=responses)
        case [project, "tasks", handle, "cancel"]:
            _allow(head.method, "POST")
            return ControlOne(project=project, handle=handle, action=Action.CANCEL)
    raise RefusedError(NOT_FOUND)


def _parts(path: str) -> list[str]:
    """Return what stands between the slashes after the prefix."""
    try:
        return [unquote(part, errors="strict") for part in path.removeprefix(PREFIX).split("/")]
    except UnicodeDecodeError:
        raise RefusedError(NOT_FOUND) from None


def _allow(method: str, *allowed: str) -> None:
    if method not in allowed:
        verbs = ", ".join(allowed)
        told = refusal(
            HTTPStatus.METHOD_NOT_ALLOWED, "bad_method", f"Here one may {verbs}.", (("allow", verbs),)
        )
        raise RefusedError(told)


def _bad(message: str) -> RefusedError:
    return RefusedError(refusal(HTTPStatus.BAD_REQUEST, "bad_request", message))


# -- lists ---------------------------------------------------------------------------------------------------


def _read_list(project: str, query: str) -> ListSome:
    named: dict[str, Any] = {}
    try:
        given = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), errors="strict")
    except ValueError:
        raise _bad("The query cannot be read.") from None
    for name, value in given:
        read = _PARAMETERS.get(name)
        if read is None or read[0] in named:
            raise _bad(f"The query has view, assigned, limit and cursor, each of them once; not {name!a}.")
        named[read[0]] = read[1](value)
    return ListSome(project=project, **named)


_Choice = TypeVar("_Choice", bound=Enum)


def _choice(name: str, choices: type[_Choice]) -> Callable[[str], _Choice]:
    def read(value: str) -> _Choice:
        try:
            return choices(value)
        except ValueError:
            raise _bad(f"{name} is one of: {', '.join(one.value for one in choices)}.") from None

    return read


def _read_limit(value: str) -> int:
    if _NUMBER.fullmatch(value) and 0 < int(value) <= MOST_ROWS:
        return int(value)
    raise _bad(f"limit is a number from 1 to {MOST_ROWS}.")


def written_place(place: Place) -> str:
    """Return a place as a cursor."""
    return f"{-place.newest_first}.{place.handle}"


def _read_cursor(value: str) -> Place:
    found = _CURSOR.fullmatch(value)
    if found is None:
        raise _bad("cursor is the nextCursor of another page.")
    return Place(-int(found["created_at_ms"]), found["handle"])


_NUMBER: Final = pattern(r"[0-9]{1,9}")
_CURSOR: Final = pattern(r"(?P<created_at_ms>[0-9]{1,15})\.(?P<handle>[A-Za-z0-9_.-]+)")
_PARAMETERS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "view": ("view", _choice("view", ProjectView)),
    "assigned": ("assigned", _choice("assigned", Assigned)),
    "limit": ("most", _read_limit),
    "cursor": ("after", _read_cursor),
}


# -- bodies --------------------------------------------------------------------------------------------------


def _read_body(head: PageHead, body: bytes | bytearray, limits: Limits) -> Mapping[str, Any]:
    if not is_json(head.headers.get("content-type", "")):
        told = refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "bad_request",
            "Content-Type must be application/json in UTF-8.",
        )
        raise RefusedError(told)
    try:
        value = decode(body, limits)
    except RemoteProtocolError:
        raise RefusedError(CANNOT_BE_READ) from None
    if not isinstance(value, dict):
        raise RefusedError(CANNOT_BE_READ)
    return value


def _read_assignee(body: Mapping[str, Any]) -> str:
    assignee = body.get("assignee")
    if set(body) != {"assignee"} or not isinstance(assignee, str) or not 0 < len(assignee) <= NAME_CHARS:
        raise _bad(f'The body is {{"assignee": NAME}}, with a name of at most {NAME_CHARS} characters.')
    return assignee


def _read_answers(body: Mapping[str, Any]) -> Mapping[str, Any]:
    responses = body.get("inputResponses")
    if set(body) != {"inputResponses"} or not isinstance(responses, dict):
        raise _bad('The body is {"inputResponses": {KEY: RESPONSE}}.')
    return responses
