"""What Streamable HTTP asks of a request beside its body, as pure functions of its head (HTTP.1 to HTTP.5).

:func:`check_head` decides on the head alone, before a body is read. The other checks compare headers with the
body, once that is parsed. :func:`request_headers` is the sender's side of the same rules.

Error texts name the header at fault and never repeat what stood in it or in the body (SEC.2).
"""

from __future__ import annotations

from base64 import b64encode
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Iterable, Mapping, Sequence
from re import compile as pattern
from typing import Any, Final

from attrs import field, frozen

from mcp_tasks_proto.errors import ErrorObject, LocalProtocolError, header_mismatch, invalid_request
from mcp_tasks_proto.inputs import HttpHead
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.jsonrpc import message_too_large

__all__ = [
    "JSON_HEADERS",
    "LOOPBACK_HOSTS",
    "LOOPBACK_ORIGINS",
    "STREAM_HEADERS",
    "EndpointPolicy",
    "HeaderParameter",
    "Refusal",
    "check_head",
    "check_length",
    "check_parameter_headers",
    "check_reach",
    "check_standard_headers",
    "check_version_header",
    "decode_header_value",
    "encode_header_value",
    "header_parameters",
    "is_json",
    "method_headers",
    "name_of",
    "params_headers",
    "read_fields",
    "request_headers",
    "split_target",
]

JSON_HEADERS: Final[tuple[tuple[str, str], ...]] = (("content-type", "application/json"),)
"""Of a response with one JSON message."""

STREAM_HEADERS: Final[tuple[tuple[str, str], ...]] = (
    ("content-type", "text/event-stream"),
    ("cache-control", "no-cache"),
    ("x-accel-buffering", "no"),
)
"""Of a response that streams; the last asks reverse proxies to pass events on at once (HTTP.4)."""

LOOPBACK_HOSTS: Final = frozenset({"localhost:*", "127.0.0.1:*", "[::1]:*"})
"""The names of the machine itself, with any port."""

LOOPBACK_ORIGINS: Final = frozenset(
    f"{scheme}://{host}" for scheme in ("http", "https") for host in LOOPBACK_HOSTS
)


# -- the head alone ----------------------------------------------------------------------------------


@frozen(kw_only=True)
class EndpointPolicy:
    """Where an endpoint is and who may reach it through a browser (HTTP.1).

    A host or origin is written as its header has it, in lower case. ``:*`` in place of the port allows every
    port, and none. ``None`` in place of a set allows everything: for servers that are meant to be public, or
    whose reverse proxy checks.
    """

    path: str = "/mcp"
    allowed_hosts: frozenset[str] | None = LOOPBACK_HOSTS
    allowed_origins: frozenset[str] | None = LOOPBACK_ORIGINS
    """A request without ``Origin`` does not come from a web page and passes."""
    sessions: bool = False
    """Whether sessions of 2025-11-25 are served: then a GET or DELETE that names one may pass (LEG.2)."""


@frozen(kw_only=True)
class Refusal:
    """The request is answered with ``status`` and goes no further."""

    status: int
    error: ErrorObject | None = None
    """For the response's body, without an id; ``None``: the body is empty."""
    headers: tuple[tuple[str, str], ...] = ()
    """Response headers that belong to the status."""


def check_head(
    method: bytes | str,
    target: bytes | str,
    headers: Iterable[tuple[bytes, bytes]],
    policy: EndpointPolicy,
    limits: Limits,
) -> HttpHead | Refusal:
    """Decide whether a request may go on to its body (HTTP.1).

    The first of these that is wrong decides: Host or Origin (403), path (404), method (405), Content-Type
    (415), Accept (406), Content-Length (400, or 413 over ``Limits.message_bytes``). Neither names nor values
    need any preparation, and none of their bytes makes this raise.
    """
    fields, repeated = read_fields(headers)
    path, _, authority = split_target(target)
    if refusal := check_reach(fields, authority, policy):
        return refusal
    if path != policy.path:
        return Refusal(status=404)
    if method not in ("POST", b"POST"):
        verb = _SESSION_METHODS.get(method) if policy.sessions and "mcp-session-id" in fields else None
        return _NOT_ALLOWED if verb is None else _check_session_request(verb, fields, repeated)
    if not is_json(fields.get("content-type", "")):
        return Refusal(status=415, error=invalid_request("Content-Type must be application/json in UTF-8"))
    accepts_json, accepts_stream = _accepts(fields.get("accept", ""))
    if not accepts_json and not accepts_stream:
        detail = "Accept must take application/json or text/event-stream"
        return Refusal(status=406, error=invalid_request(detail))
    if refusal := check_length(fields, limits):
        return refusal
    return HttpHead(headers=fields, repeated=repeated, accepts_stream=accepts_stream)


def check_reach(fields: Mapping[str, str], authority: str | None, policy: EndpointPolicy) -> Refusal | None:
    """Refuse a request under a name that is not this server's, or from a page that is not allowed (HTTP.1).

    That keeps pages of others away, also those whose own name leads here by a trick of DNS.
    """
    if not _allowed(fields.get("host", "") if authority is None else authority, policy.allowed_hosts):
        return Refusal(status=403, error=invalid_request("Host is not one that is served here"))
    if "origin" in fields and not _allowed(fields["origin"], policy.allowed_origins):
        return Refusal(status=403, error=invalid_request("Origin is not allowed"))
    return None


def check_length(fields: Mapping[str, str], limits: Limits) -> Refusal | None:
    """Refuse a body whose announced length is none, or over ``Limits.message_bytes`` (HTTP.1)."""
    length = fields.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        return Refusal(status=400, error=invalid_request("Content-Length must be one number"))
    if len(length) > _LENGTH_DIGITS or int(length) > limits.message_bytes:
        return Refusal(status=413, error=message_too_large(limits).error)
    return None


_SESSION_METHODS: Final[Mapping[bytes | str, str]] = {
    "GET": "GET",
    b"GET": "GET",
    "DELETE": "DELETE",
    b"DELETE": "DELETE",
}
_NOT_ALLOWED: Final = Refusal(status=405, headers=(("allow", "POST"),))


def _check_session_request(
    method: str, fields: Mapping[str, str], repeated: frozenset[str]
) -> HttpHead | Refusal:
    """Decide on a request of 2025-11-25 that carries no message."""
    if method == "GET" and not _accepts(fields.get("accept", ""))[1]:
        return Refusal(status=406, error=invalid_request("Accept must take text/event-stream"))
    return HttpHead(headers=fields, repeated=repeated, method=method)


def read_fields(headers: Iterable[tuple[bytes, bytes]]) -> tuple[dict[str, str], frozenset[str]]:
    """Return the headers by name, those of the same name joined, and the names that were repeated."""
    fields: dict[str, str] = {}
    repeated: set[str] = set()
    for raw_name, raw_value in headers:
        name = str(raw_name, "latin-1").lower()
        value = str(raw_value, "latin-1").strip(" \t")
        if name in fields:
            repeated.add(name)
            value = f"{fields[name]}, {value}"
        fields[name] = value
    return fields, frozenset(repeated)


def split_target(target: bytes | str) -> tuple[str, str, str | None]:
    """Return the path and the query of a request target and, when it is a whole URL, its authority."""
    text = target if isinstance(target, str) else str(target, "latin-1")
    if text.startswith("/"):
        path, _, query = text.partition("?")
        return path, query, None
    if match := _ABSOLUTE_TARGET.fullmatch(text):
        return match["path"] or "/", match["query"] or "", match["authority"]
    return text, "", None


def _allowed(value: str, allowed: frozenset[str] | None) -> bool:
    """Whether a host or an origin is in a set of an :class:`EndpointPolicy`."""
    if allowed is None:
        return True
    value = value.lower()
    if value in allowed or f"{value}:*" in allowed:
        return True
    name, _, port = value.rpartition(":")
    return port.isascii() and port.isdigit() and f"{name}:*" in allowed


def is_json(content_type: str) -> bool:
    """Whether a ``Content-Type`` says JSON in UTF-8."""
    if content_type == "application/json":
        return True
    media_type, *parameters = content_type.lower().split(";")
    if media_type.strip(" \t") != "application/json":
        return False
    for parameter in parameters:
        name, _, value = parameter.strip(" \t").partition("=")
        if name == "charset" and value.strip('"') not in ("utf-8", "utf8"):
            return False
    return True


def _accepts(accept: str) -> tuple[bool, bool]:
    """Return whether the header takes JSON, and whether it takes event streams; absent, it takes both."""
    if accept in ("", "*/*", "application/json, text/event-stream"):
        return True, True
    taken: dict[str, bool] = {}
    for item in accept.lower().split(","):
        media_range, *parameters = (part.strip(" \t") for part in item.split(";"))
        refused = any(_ZERO_WEIGHT.fullmatch(parameter) for parameter in parameters)
        taken[media_range] = taken.get(media_range, False) or not refused
    anything = taken.get("*/*", False)
    return (
        taken.get("application/json", taken.get("application/*", anything)),
        taken.get("text/event-stream", taken.get("text/*", anything)),
    )


_LENGTH_DIGITS: Final = 18
_ABSOLUTE_TARGET: Final = pattern(r"https?://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?")
_ZERO_WEIGHT: Final = pattern(r"q=0(\.0*)?")


# -- values in headers -------------------------------------------------------------------------------


def encode_header_value(value: str) -> str:
    """Return ``value`` as a header can carry it: plain where that is safe, else ``=?base64?…?=`` (HTTP.2).

    Raises :class:`LocalProtocolError` for a lone surrogate.
    """
    if _NAME.fullmatch(value) or (_PLAIN.fullmatch(value) and not _ENCODED.fullmatch(value)):
        return value  # mostly a name, which can be nothing else
    try:
        return f"=?base64?{b64encode(value.encode()).decode()}?="
    except UnicodeEncodeError:
        raise LocalProtocolError("a header value must not have lone surrogates") from None


def decode_header_value(raw: str) -> str | None:
    """Return what a header value stands for; ``None``: it is malformed.

    Malformed are characters other than visible ASCII, space and tab, and Base64 that is not exactly what an
    encoder writes or is not UTF-8.
    """
    if not _FIELD_VALUE.fullmatch(raw):
        return None
    match = _ENCODED.fullmatch(raw)
    if match is None:
        return raw
    encoded = match["text"].encode()
    try:
        decoded = a2b_base64(encoded)
        # Decoders pass over stray characters; one value must have one encoding.
        return decoded.decode() if b64encode(decoded) == encoded else None
    except (Base64Error, UnicodeDecodeError):
        return None


_TOKEN: Final = pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NAME: Final = pattern(r"[!#$%&'*+./^_`|~0-9A-Za-z-]+")
"""What methods and tools are called: none of it is ever encoded."""
_FIELD_VALUE: Final = pattern(r"[\t\x20-\x7e]*")
_PLAIN: Final = pattern(r"(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?")
_ENCODED: Final = pattern(r"=\?base64\?(?P<text>.*)\?=")


# -- the standard headers ----------------------------------------------------------------------------

_NAMED_BY: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}


def name_of(method: str, params: Mapping[str, Any]) -> str | None:
    """Return what ``Mcp-Name`` must say (HTTP.2); ``None``: the method has no name, or the params lack it."""
    member = _NAMED_BY.get(method)
    name = None if member is None else params.get(member)
    return name if isinstance(name, str) else None


def check_version_header(head: HttpHead, version: str) -> ErrorObject | None:
    """Check ``MCP-Protocol-Version`` against the version in the body; ``None``: all is well (HTTP.2)."""
    return _check_field(head, "MCP-Protocol-Version", version)


def check_standard_headers(head: HttpHead, method: str, params: Mapping[str, Any]) -> ErrorObject | None:
    """Check ``Mcp-Method`` and ``Mcp-Name`` against the body; ``None``: all is well (HTTP.2).

    A body without the name that its method needs is for the check of its params to refuse.
    """
    error = _check_field(head, "Mcp-Method", method)
    if error is not None:
        return error
    name = name_of(method, params)
    return None if name is None else _check_field(head, "Mcp-Name", name, decode=True)


def _check_field(head: HttpHead, name: str, expected: str, *, decode: bool = False) -> ErrorObject | None:
    """Check one required header. Only some may be encoded: what others say, every intermediary must see."""
    key = name.lower()
    raw = head.headers.get(key)
    if raw == expected and not head.repeated and _NAME.fullmatch(raw):
        return None  # as almost always: nothing that could be encoded, malformed or there twice
    if raw is None:
        return header_mismatch(f"{name} is missing")
    if key in head.repeated:
        return header_mismatch(f"{name} stands there more than once")
    value = decode_header_value(raw)
    if value is None:
        return header_mismatch(f"{name} is malformed")
    if expected != (value if decode else raw):
        return header_mismatch(f"{name} differs from the body")
    return None


# -- headers from tool parameters --------------------------------------------------------------------


@frozen(kw_only=True)
class HeaderParameter:
    """A tool parameter that is mirrored into a header (HTTP.3)."""

    header: str = field()
    """The header's whole name, as annotated, a token: ``Mcp-Param-Region``."""
    path: tuple[str, ...]
    """Where its value is in the arguments: names, from the outside in."""
    type: str
    """``"string"``, ``"integer"`` or ``"boolean"``."""
    key: str = field(init=False)
    """The header's name in lower case."""

    @key.default
    def _lower_case(self) -> str:
        return self.header.lower()

    @header.validator
    def _check_header(self, _: object, header: str) -> None:
        if not _TOKEN.fullmatch(header):
            raise ValueError("a header's name must be a token")


_ANNOTATION: Final = "x-mcp-header"
_SCHEMA_DEPTH: Final = 64
_MIRRORED_TYPES: Final = ("string", "integer", "boolean")
_MAPS_OF_SCHEMAS: Final = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"}
)
_DATA: Final = frozenset({"const", "default", "enum", "examples"})


def header_parameters(input_schema: Any) -> tuple[HeaderParameter, ...]:
    """Return the parameters that a tool's ``inputSchema`` mirrors into headers, in schema order (HTTP.3).

    Raises ``ValueError``, saying what is wrong, for an annotation that the specification forbids: a name
    that is no header token or is taken, a type other than string, integer and boolean, a place that is not
    reached through ``properties`` alone.
    """
    found: list[HeaderParameter] = []
    _walk_schema(input_schema, (), 0, found)
    taken: set[str] = set()
    for parameter in found:
        if parameter.key in taken:
            raise ValueError(f"{_ANNOTATION}: {_place(parameter.path)} has the header of another parameter")
        taken.add(parameter.key)
    return tuple(found)


def _walk_schema(schema: Any, path: tuple[str, ...] | None, depth: int, found: list[HeaderParameter]) -> None:
    """Collect the annotations of a schema and those in it; ``path`` is ``None`` where none is allowed."""
    if depth > _SCHEMA_DEPTH:
        raise ValueError(f"inputSchema is nested more than {_SCHEMA_DEPTH} levels deep")
    if isinstance(schema, (list, tuple)):
        for item in schema:
            _walk_schema(item, None, depth + 1, found)
    if not isinstance(schema, Mapping):
        return
    if _ANNOTATION in schema:
        found.append(_read_annotation(schema, path))
    for keyword, value in schema.items():
        if keyword in _DATA or keyword == _ANNOTATION:
            continue
        if keyword in _MAPS_OF_SCHEMAS and isinstance(value, Mapping):
            chain = path if keyword == "properties" else None
            for name, inner in value.items():
                _walk_schema(inner, None if chain is None else (*chain, name), depth + 1, found)
        else:
            _walk_schema(value, None, depth + 1, found)


def _read_annotation(schema: Mapping[str, Any], path: tuple[str, ...] | None) -> HeaderParameter:
    if not path:
        raise ValueError(f"{_ANNOTATION} must be on a property reached through properties alone")
    name = schema[_ANNOTATION]
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise ValueError(f"{_ANNOTATION} must be a header token ({_place(path)})")
    kind = schema.get("type")
    if isinstance(kind, (list, tuple)):
        # A parameter that may also be null is still a primitive one; null has no header.
        others = [one for one in kind if one != "null"]
        kind = others[0] if len(others) == 1 else None
    if kind not in _MIRRORED_TYPES:
        raise ValueError(f"{_ANNOTATION} must be on a string, an integer or a boolean ({_place(path)})")
    return HeaderParameter(header=f"Mcp-Param-{name}", path=path, type=kind)


def _place(path: tuple[str, ...]) -> str:
    """Name a parameter; what its schema says stays out of error texts (SEC.2)."""
    return f"parameter {'.'.join(path)}"


def check_parameter_headers(
    head: HttpHead, parameters: Sequence[HeaderParameter], arguments: Any
) -> ErrorObject | None:
    """Check the ``Mcp-Param-*`` headers of a call against its arguments; ``None``: all is well (HTTP.3).

    A header must be there exactly when its argument is and is not null. Integers are compared as numbers.
    """
    for parameter in parameters:
        problem = _parameter_problem(head, parameter, _argument_at(arguments, parameter.path))
        if problem is not None:
            return header_mismatch(f"{parameter.header} {problem}")
    return None


def _parameter_problem(head: HttpHead, parameter: HeaderParameter, argument: Any) -> str | None:
    raw = head.headers.get(parameter.key)
    if argument is None:
        return None if raw is None else "is there, but its argument is not"
    if raw is None:
        return "is missing"
    if parameter.key in head.repeated:
        return "stands there more than once"
    value = decode_header_value(raw)
    if value is None:
        return "is malformed"
    expected = _header_text(argument)
    if expected is None:
        return "has an argument that no header can carry"
    if value == expected or (parameter.type == "integer" and _same_integer(value, expected)):
        return None
    return "differs from the body"


def _argument_at(arguments: Any, path: tuple[str, ...]) -> Any:
    """Return the value at ``path``; ``None`` where there is none."""
    for name in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(name)
    return arguments


def _header_text(argument: Any) -> str | None:
    """Return an argument as text; ``None`` for what a header cannot carry."""
    match argument:
        case str():
            return argument
        case bool():
            return "true" if argument else "false"
        case int() if abs(argument) <= _SAFE_INTEGER:
            return str(argument)
        case float() if argument.is_integer() and abs(argument) <= _SAFE_INTEGER:
            return str(int(argument))
        case _:
            return None


def _same_integer(value: str, expected: str) -> bool:
    match = _INTEGER.fullmatch(value)
    return match is not None and str(int(match["whole"])) == expected


_SAFE_INTEGER: Final = 2**53 - 1
_INTEGER: Final = pattern(r"(?P<whole>-?[0-9]{1,32})(?:\.0{1,32})?")


# -- the sender's side -------------------------------------------------------------------------------


def request_headers(
    method: str, params: Mapping[str, Any], version: str, parameters: Sequence[HeaderParameter] = ()
) -> list[tuple[str, str]]:
    """Return the headers that a client must send with a message (HTTP.2, HTTP.3).

    ``parameters`` are those of the tool that is called. Raises :class:`LocalProtocolError` for a method that
    is no plain header value, and for an argument that must be mirrored and cannot be.
    """
    return [*method_headers(method, version), *params_headers(method, params, parameters)]


def method_headers(method: str, version: str) -> list[tuple[str, str]]:
    """Return those of :func:`request_headers` that every message with this method has."""
    if encode_header_value(method) != method:
        raise LocalProtocolError("the method cannot stand in a header")
    return [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", version),
        ("Mcp-Method", method),
    ]


def params_headers(
    method: str, params: Mapping[str, Any], parameters: Sequence[HeaderParameter] = ()
) -> list[tuple[str, str]]:
    """Return those of :func:`request_headers` that repeat what is in the params.

    Their names are tokens; their values are visible ASCII, with spaces and tabs only in between.
    """
    headers = []
    name = name_of(method, params)
    if name is not None:
        headers.append(("Mcp-Name", encode_header_value(name)))
    for parameter in parameters:
        argument = _argument_at(params.get("arguments"), parameter.path)
        if argument is None:
            continue
        text = _header_text(argument)
        if text is None:
            raise LocalProtocolError(f"{parameter.header}: its argument is nothing that a header can carry")
        headers.append((parameter.header, encode_header_value(text)))
    return headers
