"""Input requests: what a server may ask of a client, and what comes back (INP.2, UPD.4, NEG.10).

Three methods, in a task as before one: ``elicitation/create`` (a form, or a URL to go to),
``sampling/createMessage`` and ``roots/list``. All functions are pure and take any JSON value for what a peer
sent. The sentences they return name the place of the problem and never repeat a value (SEC.2).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import count
from typing import Any, Final

from mcp_tasks_proto.input_requests.formats import FORMATS
from mcp_tasks_proto.input_requests.forms import check_authored_schema, check_content, check_schema
from mcp_tasks_proto.input_requests.sampling import SAMPLED, check_params
from mcp_tasks_proto.input_requests.shapes import OBJECT, STRING, array_of, choice, members, value

__all__ = ["check_requests", "check_response", "missing_capabilities", "unique_key"]

_ELICIT: Final = "elicitation/create"
_SAMPLE: Final = "sampling/createMessage"
_ROOTS: Final = "roots/list"

_URI: Final = FORMATS["uri"]


# -- asking -------------------------------------------------------------------------------------------

_REQUEST: Final = members({"method": choice(_ELICIT, _SAMPLE, _ROOTS)}, optional={"params": OBJECT})
_WITH_PARAMS: Final = members({"params": OBJECT})
_MODE: Final = members({}, optional={"mode": choice("form", "url")})
_FORM: Final = members({"message": STRING, "requestedSchema": check_schema})
_URL: Final = members(
    {"message": STRING, "url": value(lambda it: isinstance(it, str) and _URI.fits(it), _URI.wanted)}
)


def check_requests(requests: Mapping[str, Mapping[str, Any]], *, from_peer: bool = False) -> str | None:
    """Say what is wrong with a set of input requests, name -> request, as a sentence for who wrote them.

    ``None``: nothing; there is at least one, and each has the shape that the specification gives it.

    An author (the default) is held to more in a form than a peer is: no keyword that nothing would enforce,
    no required field that is not there, no default that the form itself would refuse (UPD.4). A client cannot
    mend those, and can show the form all the same.
    """
    if not isinstance(requests, Mapping) or not requests:
        return "requests must be an object with at least one request"
    for name, request in requests.items():
        if not isinstance(name, str) or not name:
            return "requests has a name that is not a string, or is empty"
        problem = _check_request(request)
        if problem is None and not from_peer and (form := _form_of(request)) is not None:
            problem = _within(".params.requestedSchema", check_authored_schema(form))
        if problem is not None:
            return f"requests[{name!r}]{problem}"
    return None


def _check_request(request: Any) -> str | None:
    if problem := _REQUEST(request):
        return problem
    if request["method"] == _ROOTS:
        return None
    if problem := _WITH_PARAMS(request):
        return problem
    params = request["params"]
    if request["method"] == _SAMPLE:
        return _within(".params", check_params(params))
    check = _URL if params.get("mode") == "url" else _FORM
    return _within(".params", _MODE(params) or check(params))


def _form_of(request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the schema of the form that a well-formed request shows, if it shows one."""
    if request["method"] != _ELICIT or request["params"].get("mode") == "url":
        return None
    form: Mapping[str, Any] = request["params"]["requestedSchema"]
    return form


def _within(where: str, problem: str | None) -> str | None:
    return None if problem is None else f"{where}{problem}"


# -- capabilities ---------------------------------------------------------------------------------------


def missing_capabilities(
    requests: Mapping[str, Mapping[str, Any]], client_capabilities: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return what a client must declare beside ``client_capabilities`` to be asked these; ``None``: nothing.

    It is the object for ``data.requiredCapabilities`` of -32021 (NEG.10). A declared value that is no object
    declares nothing. ``elicitation: {}`` declares forms (INP.2), but no longer once ``url`` is added, so
    where both are asked for, both are named.
    """
    needed: dict[str, set[str]] = {}
    for request in requests.values():
        for capability, parts in _needs(request).items():
            needed.setdefault(capability, set()).update(parts)
    missing: dict[str, Any] = {}
    for capability, parts in needed.items():
        declared = client_capabilities.get(capability)
        if not isinstance(declared, Mapping):
            missing[capability] = _named(parts)
        elif declared or parts != {"form"}:
            lacking = {part for part in parts if not isinstance(declared.get(part), Mapping)}
            if lacking:
                missing[capability] = _named(lacking)
    return missing or None


def _needs(request: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return the capability that one request needs, with its parts; of a malformed one, what can be read."""
    params = request.get("params")
    if not isinstance(params, Mapping):
        params = {}
    match request.get("method"):
        case "elicitation/create":
            return {"elicitation": {"url" if params.get("mode") == "url" else "form"}}
        case "sampling/createMessage":
            tools = {"tools"} if "tools" in params or "toolChoice" in params else set()
            context = {"context"} if params.get("includeContext", "none") != "none" else set()
            return {"sampling": tools | context}
        case "roots/list":
            return {"roots": set()}
    return {}


def _named(parts: set[str]) -> dict[str, Any]:
    return {part: {} for part in sorted(parts)}


# -- answers ------------------------------------------------------------------------------------------------

_ACTION: Final = members({"action": choice("accept", "decline", "cancel")})
_ROOT_URI: Final = value(lambda it: isinstance(it, str) and it.startswith("file://"), "a file:// URI")
_ROOT_LIST: Final = members({"roots": array_of(members({"uri": _ROOT_URI}, optional={"name": STRING}))})


def check_response(request: Mapping[str, Any], response: Any) -> str | None:
    """Say what is wrong with the answer to one request (UPD.4); ``None``: nothing.

    The content of an accepted form must fit its ``requestedSchema``; none at all counts as an empty one.
    Whoever declines, cancels or goes to a URL owes no content, and what stands there is not looked at. Never
    raises; a request that :func:`check_requests` refuses even from a peer has no right answer.
    """
    if problem := _check_request(request):
        return f"request{problem}"
    return _within("answer", _check_answer(request, response))


def _check_answer(request: Mapping[str, Any], response: Any) -> str | None:
    if request["method"] == _ROOTS:
        return _ROOT_LIST(response)
    if request["method"] == _SAMPLE:
        return SAMPLED(response)
    if problem := _ACTION(response):
        return problem
    form = _form_of(request)
    if form is None or response["action"] != "accept":
        return None
    return _within(".content", check_content(form, response.get("content", {})))


# -- keys ---------------------------------------------------------------------------------------------


def unique_key(name: str, used: Collection[str]) -> str:
    """Return the key under which a peer sees the request that its tool calls ``name`` (INP.1).

    The first of ``confirm``, ``confirm.2``, ``confirm.3`` and so on that is not in ``used``: the keys of the
    task so far, answered ones included.
    """
    if name not in used:
        return name
    return next(key for number in count(2) if (key := f"{name}.{number}") not in used)
