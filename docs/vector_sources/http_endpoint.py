"""HTTP.1, HTTP.4, HTTP.5: who may come to the endpoint, event streams, and the status of errors."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.making import Vector, decided, legacy_spec, spec, table

HTTP: Final = "basic/transports/streamable-http"
SECURITY: Final = spec(HTTP, "security--endpoint")
SENDING: Final = spec(HTTP, "sending-messages")
RECEIVING: Final = spec(HTTP, "receiving-messages")
CODES: Final = spec("basic/index", "error-codes")

PASSES: Final[dict[str, Any]] = {"passes": True}
TYPE: Final = ("Content-Type", "application/json")
ACCEPT: Final = ("Accept", "application/json, text/event-stream")
HERE: Final = ("Host", "localhost:8000")


def request(
    *headers: tuple[str, str], method: str = "POST", target: str = "/mcp", **endpoint: Any
) -> dict[str, Any]:
    """Return a request with these headers at an endpoint that is like all others but for what is said."""
    return {
        "request": {"method": method, "target": target, "headers": [list(header) for header in headers]},
        **({"endpoint": endpoint} if endpoint else {}),
    }


def status(code: int) -> dict[str, Any]:
    """Return a refusal."""
    return {"status": code}


def at(host: str, **endpoint: Any) -> dict[str, Any]:
    """Return a good request under a name."""
    return request(("Host", host), TYPE, ACCEPT, **endpoint)


def of(origin: str, **endpoint: Any) -> dict[str, Any]:
    """Return a good request from a page."""
    return request(HERE, ("Origin", origin), TYPE, ACCEPT, **endpoint)


def typed(content_type: str) -> dict[str, Any]:
    """Return a request with a body of this type."""
    return request(HERE, ("Content-Type", content_type), ACCEPT)


def taking(accept: str) -> dict[str, Any]:
    """Return a request whose sender takes this."""
    return request(HERE, TYPE, ("Accept", accept))


def long(length: str) -> dict[str, Any]:
    """Return a request with a body of this length."""
    return request(HERE, TYPE, ACCEPT, ("Content-Length", length), message_bytes=1000)


HOSTS: Final = [
    ("localhost", "the machine itself", at("localhost"), PASSES),
    ("localhost-port", "with a port", at("localhost:8000"), PASSES),
    ("loopback", "the machine itself", at("127.0.0.1:8000"), PASSES),
    ("loopback-6", "the machine itself", at("[::1]:8000"), PASSES),
    ("any-case", "names have no case", at("LocalHost:8000"), PASSES),
    ("other-name", "a page's own name that leads here", at("evil.example:8000"), status(403)),
    ("longer-name", "a name that only begins alike", at("localhost.evil.example"), status(403)),
    ("longer-front", "a name that only ends alike", at("evil-localhost"), status(403)),
    ("empty", "no name at all", at(""), status(403)),
    ("missing", "no name at all", request(TYPE, ACCEPT), status(403)),
    ("no-port-number", "what follows the colon is a number", at("localhost:evil"), status(403)),
    ("listed", "the names that a server is given", at("api.example", allowed_hosts=["api.example"]), PASSES),
    (
        "listed-port",
        "without the star the port has to be right",
        at("api.example:1", allowed_hosts=["api.example"]),
        status(403),
    ),
    (
        "listed-any-port",
        "with the star it is any",
        at("api.example:1", allowed_hosts=["api.example:*"]),
        PASSES,
    ),
    (
        "listed-other",
        "the list replaces the machine's own names",
        at("localhost", allowed_hosts=["api.example"]),
        status(403),
    ),
    ("any", "whatever name, where its proxy checks", at("evil.example", allowed_hosts=None), PASSES),
    (
        "whole-url",
        "the name in a target that is a whole URL counts",
        request(HERE, TYPE, ACCEPT, target="http://evil.example/mcp"),
        status(403),
    ),
]

ORIGINS: Final = [
    ("none", "no page sent it", at("localhost:8000"), PASSES),
    ("http", "a page of the machine itself", of("http://localhost:3000"), PASSES),
    ("https", "a page of the machine itself", of("https://127.0.0.1"), PASSES),
    ("six", "a page of the machine itself", of("http://[::1]:3000"), PASSES),
    ("foreign", "somebody's page", of("https://evil.example"), status(403)),
    ("null", "a page without an origin", of("null"), status(403)),
    ("empty", "an empty one is none of those allowed", of(""), status(403)),
    ("lookalike", "a name that only begins alike", of("http://localhost.evil.example"), status(403)),
    ("other-scheme", "another scheme", of("ftp://localhost"), status(403)),
    (
        "listed",
        "the pages that a server is given",
        of("https://app.example", allowed_origins=["https://app.example"]),
        PASSES,
    ),
    (
        "listed-other",
        "and no others",
        of("http://localhost", allowed_origins=["https://app.example"]),
        status(403),
    ),
    (
        "listed-http",
        "the scheme counts",
        of("http://app.example", allowed_origins=["https://app.example"]),
        status(403),
    ),
    (
        "any",
        "any page, for a server that is public",
        of("https://evil.example", allowed_origins=None),
        PASSES,
    ),
    (
        "before-all",
        "the origin is looked at before anything else",
        request(HERE, ("Origin", "https://evil.example"), method="GET", target="/other"),
        status(403),
    ),
]

REQUESTS: Final = [
    ("post", "as it should be", request(HERE, TYPE, ACCEPT), PASSES),
    ("query", "a query is no part of the path", request(HERE, TYPE, ACCEPT, target="/mcp?x=1"), PASSES),
    ("other-path", "there is one endpoint", request(HERE, TYPE, ACCEPT, target="/other"), status(404)),
    ("longer-path", "there is one endpoint", request(HERE, TYPE, ACCEPT, target="/mcp/"), status(404)),
    (
        "own-path",
        "its path is the server's choice",
        request(HERE, TYPE, ACCEPT, target="/rpc", path="/rpc"),
        PASSES,
    ),
    *(
        (method.lower(), f"{method} is not served", request(HERE, TYPE, ACCEPT, method=method), status(405))
        for method in ("GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS")
    ),
    (
        "session-get",
        "sessions mean nothing here",
        request(HERE, ACCEPT, ("Mcp-Session-Id", "s"), method="GET"),
        status(405),
    ),
    (
        "path-before-method",
        "the path is looked at before the method",
        request(HERE, method="GET", target="/other"),
        status(404),
    ),
    (
        "method-before-type",
        "the method is looked at before the body's type",
        request(HERE, method="PUT"),
        status(405),
    ),
    (
        "type-before-accept",
        "the body's type before Accept",
        request(HERE, ("Accept", "text/html")),
        status(415),
    ),
]

TYPES: Final = [
    ("json", "JSON", typed("application/json"), PASSES),
    ("any-case", "types have no case", typed("Application/JSON"), PASSES),
    ("utf-8", "said to be UTF-8", typed("application/json; charset=utf-8"), PASSES),
    ("utf-8-quoted", "said to be UTF-8", typed('application/json;charset="UTF-8"'), PASSES),
    ("parameter", "other parameters mean nothing", typed("application/json; profile=x"), PASSES),
    ("missing", "no type at all", request(HERE, ACCEPT), status(415)),
    ("text", "text", typed("text/plain"), status(415)),
    ("form", "what a page can send without asking", typed("application/x-www-form-urlencoded"), status(415)),
    ("json-seq", "a longer name", typed("application/json-seq"), status(415)),
    ("suffix", "another type in JSON", typed("application/vnd.x+json"), status(415)),
    ("latin-1", "another charset", typed("application/json; charset=iso-8859-1"), status(415)),
    ("utf-16", "another charset", typed("application/json; charset=utf-16"), status(415)),
]

ACCEPTS: Final = [
    ("both", "as clients must", taking("application/json, text/event-stream"), PASSES),
    ("other-order", "in any order", taking("text/event-stream,application/json"), PASSES),
    ("json-only", "one of them is enough", taking("application/json"), PASSES),
    ("stream-only", "one of them is enough", taking("text/event-stream"), PASSES),
    ("anything", "everything", taking("*/*"), PASSES),
    ("any-text", "a range", taking("text/*"), PASSES),
    ("any-application", "a range", taking("application/*"), PASSES),
    ("any-case", "types have no case", taking("Application/JSON"), PASSES),
    ("weights", "weights above zero", taking("application/json;q=0.1, text/html"), PASSES),
    ("missing", "no header takes everything", request(HERE, TYPE), PASSES),
    ("html", "neither", taking("text/html"), status(406)),
    ("image", "neither", taking("image/*"), status(406)),
    ("refused", "a weight of zero refuses", taking("application/json;q=0"), status(406)),
    ("refused-long", "a weight of zero refuses", taking("application/json;q=0.000, text/html"), status(406)),
    (
        "refused-both",
        "both are refused, and anything else is taken",
        taking("application/json;q=0, text/event-stream;q=0, */*"),
        status(406),
    ),
    ("refused-one", "one is refused, the other is taken", taking("application/json;q=0, */*"), PASSES),
]

LENGTHS: Final = [
    ("none", "no body, or one in chunks", request(HERE, TYPE, ACCEPT), PASSES),
    ("small", "within the bound", long("999"), PASSES),
    ("exact", "at the bound", long("1000"), PASSES),
    ("large", "over the bound", long("1001"), status(413)),
    ("huge", "over every bound", long("9" * 30), status(413)),
    ("sign", "no number", long("-1"), status(400)),
    ("text", "no number", long("many"), status(400)),
    ("plus", "no number", long("+5"), status(400)),
]

STATUSES: Final = [
    (f"code{code}", says, {"code": code}, {"http_status": http})
    for code, http, says in (
        (-32700, 400, "not JSON"),
        (-32600, 400, "no request"),
        (-32601, 404, "an unknown method"),
        (-32603, 200, "the server failed"),
        (-32020, 400, "headers differ from the body"),
        (-32021, 400, "too few capabilities"),
        (-32022, 400, "a version that is not served"),
        (-32602, 200, "params that do not fit, or an unknown task"),
        (-32099, 200, "a code of a tool's own"),
        (1, 200, "a code of a tool's own"),
    )
]


def event(data: str, kind: str = "message", last_id: str = "") -> dict[str, Any]:
    """Return one event as it is read."""
    return {"data": data, "event": kind, "last_event_id": last_id}


def chunks(*texts: str) -> dict[str, Any]:
    """Return what a reader of events is given, in pieces."""
    return {"chunks": list(texts)}


def events(*read: dict[str, Any], cut: bool = False) -> dict[str, Any]:
    """Return what it finds, and whether the stream broke off in the middle of an event."""
    return {"events": list(read), "cut_off": cut}


EVENTS: Final = [
    ("one", "one event", chunks("data: {}\n\n"), events(event("{}"))),
    ("no-space", "the space after the colon is optional", chunks("data:{}\n\n"), events(event("{}"))),
    ("one-space", "only one space is taken away", chunks("data:  {}\n\n"), events(event(" {}"))),
    ("crlf", "lines may end with CRLF", chunks("data: {}\r\n\r\n"), events(event("{}"))),
    ("cr", "lines may end with CR", chunks("data: {}\r\r"), events(event("{}"))),
    (
        "mixed",
        "lines may end in any way",
        chunks("data: 1\rdata: 2\r\ndata: 3\n\n"),
        events(event("1\n2\n3")),
    ),
    (
        "crlf-split",
        "a CRLF in two pieces is one end",
        chunks("data: 1\r", "\ndata: 2\r", "\n\r", "\n"),
        events(event("1\n2")),
    ),
    ("byte-by-byte", "pieces mean nothing", chunks(*"data: {}\n\n"), events(event("{}"))),
    ("two", "two events", chunks("data: 1\n\ndata: 2\n\n"), events(event("1"), event("2"))),
    ("comment", "a comment is no event", chunks(":\n\n: keep-alive\n\n"), events()),
    ("comment-inside", "nor part of one", chunks("data: 1\n: x\ndata: 2\n\n"), events(event("1\n2"))),
    ("bom", "a byte order mark may come first", chunks("\ufeffdata: 1\n\n"), events(event("1"))),
    ("bom-later", "but only first", chunks("data: 1\n\n\ufeffdata: 2\n\n"), events(event("1"))),
    ("event-name", "an event may have a type", chunks("event: x\ndata: 1\n\n"), events(event("1", "x"))),
    (
        "event-name-reset",
        "for itself alone",
        chunks("event: x\ndata: 1\n\ndata: 2\n\n"),
        events(event("1", "x"), event("2")),
    ),
    (
        "event-without-data",
        "without data it is no event",
        chunks("event: x\n\ndata: 1\n\n"),
        events(event("1")),
    ),
    (
        "id",
        "an id stays until the next",
        chunks("id: 7\ndata: 1\n\ndata: 2\n\n"),
        events(event("1", last_id="7"), event("2", last_id="7")),
    ),
    ("id-nul", "an id with NUL is none", chunks("id: a\0b\ndata: 1\n\n"), events(event("1"))),
    ("unknown-field", "unknown fields are left out", chunks("x: 1\ndata: 1\n\n"), events(event("1"))),
    ("field-without-colon", "a name alone has an empty value", chunks("data\n\n"), events(event(""))),
    ("empty-data", "empty data are data", chunks("data:\ndata:\n\n"), events(event("\n"))),
    ("non-ascii", "data are UTF-8", chunks("data: 世界\n\n"), events(event("世界"))),
    (
        "cut",
        "what has no empty line after it is lost",
        chunks("data: 1\n\ndata: 2\n"),
        events(event("1"), cut=True),
    ),
    ("cut-in-line", "what has no empty line after it is lost", chunks("dat"), events(cut=True)),
    (
        "separator-characters",
        "other separators of Unicode are no line ends",
        chunks("data: a\u2028b\x0bc\n\n"),
        events(event("a\u2028b\x0bc")),
    ),
]

WRITTEN: Final = [
    ("one-line", "a message on one line", {"data": "{}"}, {"text": "data: {}\n\n"}),
    ("newline", "a newline in it needs another line", {"data": "a\nb"}, {"text": "data: a\ndata: b\n\n"}),
    ("crlf", "every kind of line end", {"data": "a\r\nb\rc"}, {"text": "data: a\ndata: b\ndata: c\n\n"}),
    ("empty", "nothing", {"data": ""}, {"text": "data: \n\n"}),
    ("id", "an id, where there is one", {"data": "{}", "event_id": "7"}, {"text": "id: 7\ndata: {}\n\n"}),
]


RESPONSES: Final = [
    ("json", "one message", {"stream": False}, {"headers": {"$has": {"content-type": "application/json"}}}),
    (
        "stream",
        "events, passed on at once",
        {"stream": True},
        {"headers": {"$has": {"content-type": "text/event-stream", "x-accel-buffering": "no"}}},
    ),
]


STATUSES_LEFT_OPEN: Final = [f"code{code}" for code in (-32700, -32600, -32603, -32602, -32099, 1)]


def vectors() -> list[Vector]:
    """Return all of them."""
    check = "check_endpoint"
    return [
        *table(check, "HTTP.1", SENDING, _of("request", REQUESTS[:1])),
        *table(check, "HTTP.1", decided("HTTP.1"), _of("request", REQUESTS[1:])),
        *table(check, "HTTP.1", decided("HTTP.1"), _of("host", HOSTS)),
        *table(check, "HTTP.1", SECURITY, _of("origin", ORIGINS), ours=["origin-before-all"]),
        *table(check, "HTTP.1", SENDING, _of("content-type", TYPES[:3])),
        *table(check, "HTTP.1", decided("HTTP.1"), _of("content-type", TYPES[3:])),
        *table(check, "HTTP.1", SENDING, _of("accept", ACCEPTS[:2])),
        *table(check, "HTTP.1", decided("HTTP.1"), _of("accept", ACCEPTS[2:])),
        *table(check, "HTTP.1 WIRE.2", decided("HTTP.1"), _of("length", LENGTHS)),
        *table("error_status", "HTTP.5", CODES, STATUSES, ours=STATUSES_LEFT_OPEN),
        *table("response_headers", "HTTP.4", RECEIVING, RESPONSES),
        *table("read_events", "HTTP.4", RECEIVING, EVENTS),
        *table("write_event", "HTTP.4", RECEIVING, WRITTEN[:-1]),
        *table(
            "write_event",
            "LEG.2",
            legacy_spec("basic/transports", "resumability-and-redelivery"),
            WRITTEN[-1:],
        ),
    ]


def _of(kind: str, rows: list[Any]) -> list[Any]:
    return [(f"{kind}-{word}", *rest) for word, *rest in rows]
