"""What Streamable HTTP asks of a request's head: HTTP.1, HTTP.2, HTTP.3, HTTP.4, SEC.2, TRAPS 11 and 12."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto.errors import ErrorCode, ErrorObject, LocalProtocolError, invalid_request
from mcp_tasks_proto.inputs import HttpHead
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.http import (
    JSON_HEADERS,
    STREAM_HEADERS,
    EndpointPolicy,
    HeaderParameter,
    Refusal,
    check_head,
    check_parameter_headers,
    check_standard_headers,
    check_version_header,
    decode_header_value,
    encode_header_value,
    header_parameters,
    name_of,
    request_headers,
    split_target,
)

POLICY = EndpointPolicy()
LIMITS = Limits()
USUAL = {
    "host": "127.0.0.1:8080",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "content-length": "100",
}


def check(
    method: str | bytes = b"POST",
    target: str | bytes = b"/mcp",
    *more: tuple[bytes, bytes],
    policy: EndpointPolicy = POLICY,
    limits: Limits = LIMITS,
    **changed: str | None,
) -> HttpHead | Refusal:
    """Check a usual request, with some headers changed, left out (``None``) or added."""
    fields: dict[str, str | None] = {
        **USUAL,
        **{name.replace("_", "-"): value for name, value in changed.items()},
    }
    headers = [
        (name.encode(), value.encode("latin-1")) for name, value in fields.items() if value is not None
    ]
    return check_head(method, target, [*headers, *more], policy, limits)


def status(checked: HttpHead | Refusal) -> int | None:
    """Return the status of a refusal; ``None``: the request may go on."""
    return checked.status if isinstance(checked, Refusal) else None


def head_of(*headers: tuple[str, str]) -> HttpHead:
    """Return the head of a request with these headers, as a server sees it."""
    more = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    checked = check(b"POST", b"/mcp", *more)
    assert isinstance(checked, HttpHead)
    return checked


# -- the head alone ----------------------------------------------------------------------------------


def test_a_usual_request_may_go_on() -> None:
    checked = check()
    assert checked == HttpHead(headers=USUAL, repeated=frozenset(), accepts_stream=True)


@pytest.mark.parametrize(("method", "target"), [("POST", "/mcp"), (b"POST", b"/mcp")])
def test_method_and_target_may_be_text_or_bytes(method: Any, target: Any) -> None:
    assert status(check(method, target)) is None


def test_names_are_lowered_and_the_whitespace_around_values_is_left_out() -> None:
    """HTTP.2; TRAPS 12."""
    assert head_of(("MCP-Method", " \t tools/call\t ")).headers["mcp-method"] == "tools/call"


def test_repeated_headers_are_noted_and_joined() -> None:
    head = head_of(("Mcp-Name", "a"), ("mcp-name", "b"), ("x-once", "c"))
    assert head.headers["mcp-name"] == "a, b"
    assert head.repeated == {"mcp-name"}


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([*map(str.encode, USUAL), b"origin", b"x"]) | st.binary(), st.binary())
    ),
    st.binary(max_size=20) | st.sampled_from([b"POST", b"GET"]),
    st.binary(max_size=20) | st.sampled_from([b"/mcp", b"/mcp?x", b"http://localhost/mcp"]),
)
def test_no_head_makes_it_raise(headers: list[tuple[bytes, bytes]], method: bytes, target: bytes) -> None:
    checked = check_head(method, target, headers, POLICY, LIMITS)
    assert status(checked) in (None, 400, 403, 404, 405, 406, 413, 415)


# Each defect with its status, in the order in which they decide.
DEFECTS: list[tuple[int, dict[str, Any]]] = [
    (403, {"host": "evil.example.com"}),
    (403, {"origin": "http://evil.example.com"}),
    (404, {"target": b"/other"}),
    (405, {"method": b"GET"}),
    (415, {"content_type": "text/plain"}),
    (406, {"accept": "text/html"}),
    (413, {"content_length": str(LIMITS.message_bytes + 1)}),
]


@pytest.mark.parametrize("first", range(len(DEFECTS)))
def test_the_first_defect_decides(first: int) -> None:
    """HTTP.1."""
    arguments: dict[str, Any] = {}
    for _, defect in DEFECTS[first:]:
        arguments.update(defect)
    assert status(check(**arguments)) == DEFECTS[first][0]


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (
            {"host": "evil.example.com"},
            Refusal(status=403, error=invalid_request("Host is not one that is served here")),
        ),
        (
            {"origin": "http://evil.example.com"},
            Refusal(status=403, error=invalid_request("Origin is not allowed")),
        ),
        (
            {"content_type": "text/plain"},
            Refusal(status=415, error=invalid_request("Content-Type must be application/json in UTF-8")),
        ),
        (
            {"accept": "text/html"},
            Refusal(
                status=406,
                error=invalid_request("Accept must take application/json or text/event-stream"),
            ),
        ),
        (
            {"content_length": "ten"},
            Refusal(status=400, error=invalid_request("Content-Length must be one number")),
        ),
    ],
)
def test_a_refusal_says_what_is_wrong(arguments: dict[str, Any], refusal: Refusal) -> None:
    """HTTP.1."""
    assert check(**arguments) == refusal


@pytest.mark.parametrize("host", ["localhost", "LocalHost:80", "127.0.0.1:8080", "[::1]", "[::1]:8080"])
def test_loopback_hosts_may_be_asked_for(host: str) -> None:
    assert status(check(host=host)) is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example.com",
        "evil.example.com:8080",
        "localhost.evil.example.com",
        "evil-localhost",
        "localhost:8080@evil.example.com",
        "localhost:evil",
        "localhost:80:80",
        "localhost:\xb2",
        "127.0.0.1.evil.example.com:80",
        "::1",
        "0.0.0.0:8080",
        "localhost, evil.example.com",
    ],
)
def test_other_hosts_may_not(host: str | None) -> None:
    """HTTP.1: what protects a local server from rebound names."""
    refusal = check(host=host)
    assert isinstance(refusal, Refusal)
    assert refusal.status == 403
    assert refusal.error is not None
    assert refusal.error.code == ErrorCode.INVALID_REQUEST


def test_a_second_host_header_is_refused() -> None:
    assert status(check(b"POST", b"/mcp", (b"Host", b"evil.example.com"))) == 403


def test_a_policy_may_name_its_hosts_with_a_port_or_any() -> None:
    policy = EndpointPolicy(allowed_hosts=frozenset({"mcp.example.com", "[2001:db8::1]:*", "a.example:81"}))
    for host in ("mcp.example.com", "MCP.example.com", "[2001:db8::1]", "[2001:db8::1]:1", "a.example:81"):
        assert status(check(policy=policy, host=host)) is None
    for host in ("mcp.example.com:8080", "a.example", "a.example:82", "localhost"):
        assert status(check(policy=policy, host=host)) == 403


def test_a_request_without_a_host_is_one_to_a_host_without_a_name() -> None:
    policy = EndpointPolicy(allowed_hosts=frozenset({"", "localhost"}))
    assert status(check(policy=policy, host=None)) is None
    assert status(check(policy=policy, host="")) is None


@pytest.mark.parametrize("host", ["anything.example", None])
def test_a_policy_may_take_every_host(host: str | None) -> None:
    assert status(check(policy=EndpointPolicy(allowed_hosts=None), host=host)) is None


@pytest.mark.parametrize(
    "origin", [None, "http://localhost", "http://localhost:3000", "https://[::1]:1", "HTTP://127.0.0.1"]
)
def test_local_origins_and_none_are_allowed(origin: str | None) -> None:
    assert status(check(origin=origin)) is None


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "http://evil.example.com",
        "http://localhost.evil.com",
        "ftp://localhost",
        "localhost",
        "http://a, http://b",
    ],
)
def test_other_origins_are_not(origin: str) -> None:
    """HTTP.1."""
    refusal = check(origin=origin)
    assert isinstance(refusal, Refusal)
    assert refusal.status == 403
    assert refusal.error is not None


def test_a_policy_may_name_its_origins_or_take_all() -> None:
    policy = EndpointPolicy(allowed_origins=frozenset({"https://app.example.com"}))
    assert status(check(policy=policy, origin="https://app.example.com")) is None
    assert status(check(policy=policy, origin="https://app.example.com:8443")) == 403
    assert status(check(policy=policy, origin="http://localhost")) == 403
    assert status(check(policy=EndpointPolicy(allowed_origins=None), origin="null")) is None


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/mcp", None),
        ("/mcp?session=1", None),
        ("/mcp?", None),
        ("http://localhost/mcp", None),
        ("http://localhost:8080/mcp?x=1", None),
        ("/", 404),
        ("/mcp/", 404),
        ("/MCP", 404),
        ("//mcp", 404),
        ("/x/../mcp", 404),
        ("*", 404),
        ("", 404),
        ("http://localhost", 404),
        ("http://evil.example.com/mcp", 403),
        ("http:///mcp", 403),
    ],
)
def test_the_target_is_the_endpoint(target: str, expected: int | None) -> None:
    refusal = check("POST", target)
    assert status(refusal) == expected
    if expected == 404:
        assert refusal == Refusal(status=404)


def test_a_whole_url_may_ask_for_the_root() -> None:
    assert status(check("POST", "http://localhost", policy=EndpointPolicy(path="/"))) is None


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("/mcp", ("/mcp", "", None)),
        (b"/mcp?a=1?b", ("/mcp", "a=1?b", None)),
        ("http://localhost:80/mcp?a=1", ("/mcp", "a=1", "localhost:80")),
        ("https://localhost/mcp", ("/mcp", "", "localhost")),
        (b"http://localhost", ("/", "", "localhost")),
        ("*", ("*", "", None)),
        ("localhost:80", ("localhost:80", "", None)),
    ],
)
def test_a_target_has_a_path_a_query_and_perhaps_an_authority(
    target: Any, parts: tuple[str, str, str | None]
) -> None:
    assert split_target(target) == parts


@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD", "OPTIONS", "PUT", "post", "", b"GET"])
def test_only_post_is_served(method: Any) -> None:
    """HTTP.1."""
    assert check(method) == Refusal(status=405, headers=(("allow", "POST"),))


SESSIONS = EndpointPolicy(sessions=True)


@pytest.mark.parametrize("method", ["GET", b"GET", "DELETE", b"DELETE"])
def test_leg2_a_session_may_be_listened_to_and_ended(method: Any) -> None:
    headers = [(b"Host", b"localhost"), (b"Mcp-Session-Id", b"x"), (b"Accept", b"text/event-stream")]
    head = check_head(method, "/mcp", headers, SESSIONS, LIMITS)
    assert isinstance(head, HttpHead)
    assert head.method == (method if isinstance(method, str) else method.decode())
    assert head.headers["mcp-session-id"] == "x"


def test_leg2_only_sessions_that_are_served() -> None:
    """HTTP.1: a server of the modern era alone has no GET."""
    named = [(b"Host", b"localhost"), (b"Mcp-Session-Id", b"x")]
    for method, headers, policy in (
        ("GET", named, POLICY),
        ("DELETE", named, POLICY),
        ("GET", named[:1], SESSIONS),
        ("DELETE", named[:1], SESSIONS),
        ("PUT", named, SESSIONS),
        ("HEAD", named, SESSIONS),
    ):
        refused = check_head(method, "/mcp", headers, policy, LIMITS)
        assert refused == Refusal(status=405, headers=(("allow", "POST"),))


def test_leg2_who_listens_takes_a_stream() -> None:
    named = [(b"Host", b"localhost"), (b"Mcp-Session-Id", b"x")]
    headers = [*named, (b"Accept", b"application/json")]
    refused = Refusal(status=406, error=invalid_request("Accept must take text/event-stream"))
    assert check_head("GET", "/mcp", headers, SESSIONS, LIMITS) == refused
    assert status(check_head("DELETE", "/mcp", headers, SESSIONS, LIMITS)) is None
    assert status(check_head("GET", "/mcp", named, SESSIONS, LIMITS)) is None  # absent, it takes both


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_leg2_the_head_of_a_session_request_is_whole(method: str) -> None:
    headers = [(b"Host", b"localhost"), (b"Mcp-Session-Id", b"x"), (b"X", b"a"), (b"x", b"b")]
    assert check_head(method, "/mcp", headers, SESSIONS, LIMITS) == HttpHead(
        headers={"host": "localhost", "mcp-session-id": "x", "x": "a, b"},
        repeated=frozenset({"x"}),
        method=method,
    )


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/json", None),
        ("Application/JSON", None),
        ("application/json;charset=utf-8", None),
        ('application/json ; charset="UTF-8"', None),
        ("application/json; version=1;", None),
        ("application/json; charset=utf8", None),
        ("application/json; charset=latin-1", 415),
        ("application/json; charset=latin-1=utf-8", 415),
        ("application/json; charset=utf-8; charset=utf-16", 415),
        ("application/jsonp", 415),
        ("application/vnd.api+json", 415),
        ("text/json", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/json, application/json", 415),
        ("", 415),
        (None, 415),
    ],
)
def test_the_body_is_json(content_type: str | None, expected: int | None) -> None:
    """HTTP.1."""
    refusal = check(content_type=content_type)
    assert status(refusal) == expected
    assert isinstance(refusal, HttpHead) or refusal.error is not None


@pytest.mark.parametrize(
    ("accept", "accepts_stream"),
    [
        (None, True),
        ("", True),
        ("*/*", True),
        ("application/json, text/event-stream", True),
        ("text/event-stream,application/json", True),
        ("Application/JSON, Text/Event-Stream", True),
        ("application/*, text/*;q=0.1", True),
        ("text/event-stream", True),
        ("application/json;q=0.5, */*;q=0.1", True),
        ("text/html, */*;q=0.001", True),
        ("text/event-stream, text/event-stream;q=0", True),
        ("application/json", False),
        ("application/*", False),
        ("application/json; charset=utf-8", False),
        ("text/event-stream;q=0, */*", False),
        ("text/*;q=0.000, */*;q=1", False),
        ("application/json, text/event-stream; Q=0", False),
    ],
)
def test_the_client_says_whether_it_takes_a_stream(accept: str | None, accepts_stream: bool) -> None:
    head = check(accept=accept)
    assert isinstance(head, HttpHead)
    assert head.accepts_stream is accepts_stream


@pytest.mark.parametrize(
    "accept",
    ["text/html", "text/plain, image/*", "*/*;q=0", "application/json;q=0.0, text/event-stream;q=0", ","],
)
def test_a_client_that_takes_neither_form_is_refused(accept: str) -> None:
    """HTTP.1."""
    refusal = check(accept=accept)
    assert isinstance(refusal, Refusal)
    assert refusal.status == 406
    assert refusal.error is not None


def test_accept_may_be_spread_over_several_headers() -> None:
    checked = check(b"POST", b"/mcp", (b"accept", b"text/event-stream"), accept="application/json")
    assert isinstance(checked, HttpHead)
    assert checked.accepts_stream


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (None, None),
        ("0", None),
        ("10", None),
        ("11", 413),
        (f"{10:018d}", None),
        (f"{10:019d}", 413),
        ("9" * 10_000, 413),
        ("-1", 400),
        ("ten", 400),
        ("", 400),
        ("1.0", 400),
        ("\xb2", 400),
        ("5, 6", 400),
    ],
)
def test_a_body_too_large_is_refused_before_it_is_read(length: str | None, expected: int | None) -> None:
    """HTTP.1, LIM.3."""
    refusal = check(limits=Limits(message_bytes=10), content_length=length)
    assert status(refusal) == expected
    if expected == 413:
        assert isinstance(refusal, Refusal)
        assert refusal.error is not None
        assert refusal.error.data == {"reason": "message_bytes"}


def test_refusals_do_not_repeat_the_request() -> None:
    """SEC.2."""
    defects: list[dict[str, Any]] = [
        {name: "hunter2"} for name in ("host", "origin", "content_type", "accept")
    ]
    for arguments in defects:
        refusal = check(**arguments)
        assert isinstance(refusal, Refusal)
        assert "hunter2" not in str(refusal)


def test_response_headers() -> None:
    """HTTP.4."""
    assert dict(JSON_HEADERS)["content-type"] == "application/json"
    assert dict(STREAM_HEADERS)["content-type"] == "text/event-stream"
    assert dict(STREAM_HEADERS)["x-accel-buffering"] == "no"


# -- values in headers -------------------------------------------------------------------------------

# The specification's own examples ("Value Encoding").
EXAMPLES = [
    ("us-west1", "us-west1"),
    ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
]


@pytest.mark.parametrize(("value", "raw"), EXAMPLES)
def test_the_examples_of_the_specification(value: str, raw: str) -> None:
    """HTTP.2."""
    assert encode_header_value(value) == raw
    assert decode_header_value(raw) == value


@pytest.mark.parametrize(
    "value", ["", "a", "a b", "a\tb", "~!", "=?base64?", "=?base64?x", "x?=", "=?base64?=", "=?BASE64?eA==?="]
)
def test_plain_values_stay_plain(value: str) -> None:
    assert encode_header_value(value) == value
    assert decode_header_value(value) == value


@pytest.mark.parametrize(
    "value", [" a", "a ", "\ta", "a\t", "\0", "a\x7f", "é", "a\r\nb", " ", "=?base64??="]
)
def test_other_values_are_encoded(value: str) -> None:
    raw = encode_header_value(value)
    assert raw == f"=?base64?{b64encode(value.encode()).decode()}?="
    assert decode_header_value(raw) == value


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])) | st.text("=?base64 \t\nA/+", max_size=20))
def test_every_value_comes_back(value: str) -> None:
    raw = encode_header_value(value)
    assert raw.isascii()
    assert raw == raw.strip()
    assert not set(raw) & {"\r", "\n", "\0"}
    assert decode_header_value(raw) == value


@pytest.mark.parametrize(
    "raw",
    [
        "=?base64?SGVsbG8?=",  # no padding
        "=?base64?SGVs!!!bG8=?=",  # characters that are not Base64's
        "=?base64?SGVsbG9=?=",  # bits after the end
        "=?base64?SGVsbG8==?=",
        "=?base64?=?=",
        "=?base64?A?=",
        "=?base64? SGVsbG8=?=",
        "=?base64?SGVs\tbG8=?=",
        "=?base64?_-8=?=",  # the alphabet of URLs
        "=?base64?//8=?=",  # not UTF-8
        "=?base64?7aCA?=",  # a surrogate
        "a\nb",
        "a\0b",
        "caf\xe9",
        "\x7f",
    ],
)
def test_malformed_values_are_told_apart(raw: str) -> None:
    """HTTP.2: strict Base64, valid UTF-8, visible ASCII."""
    assert decode_header_value(raw) is None


def test_an_empty_value_may_be_encoded() -> None:
    assert decode_header_value("=?base64??=") == ""


def test_a_lone_surrogate_has_no_header_form() -> None:
    with pytest.raises(LocalProtocolError, match="surrogate"):
        encode_header_value("\ud800")


# -- the standard headers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "render"}, "render"),
        ("prompts/get", {"name": "greet"}, "greet"),
        ("resources/read", {"uri": "file:///a", "name": "x"}, "file:///a"),
        ("tasks/get", {"taskId": "t", "name": "x"}, "t"),
        ("tasks/update", {"taskId": "t"}, "t"),
        ("tasks/cancel", {"taskId": ""}, ""),
        ("tools/list", {"name": "x"}, None),
        ("tools/call", {}, None),
        ("tools/call", {"name": 5}, None),
        ("tasks/get", {"taskId": None}, None),
    ],
)
def test_what_a_request_is_named_by(method: str, params: dict[str, Any], name: str | None) -> None:
    """HTTP.2."""
    assert name_of(method, params) == name


def mismatch(error: ErrorObject | None) -> str | None:
    """Return what a -32020 says; ``None``: there was no error."""
    if error is None:
        return None
    assert error.code == ErrorCode.HEADER_MISMATCH
    assert error.http_status == 400
    return error.message.removeprefix("Header mismatch: ")


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ([("MCP-Protocol-Version", "2026-07-28")], None),
        ([("mcp-protocol-version", " 2026-07-28 ")], None),
        ([], "MCP-Protocol-Version is missing"),
        ([("MCP-Protocol-Version", "2025-11-25")], "MCP-Protocol-Version differs from the body"),
        ([("MCP-Protocol-Version", "")], "MCP-Protocol-Version differs from the body"),
        ([("MCP-Protocol-Version", "2026\xe9")], "MCP-Protocol-Version is malformed"),
        ([("MCP-Protocol-Version", "2026-07-28")] * 2, "MCP-Protocol-Version stands there more than once"),
    ],
)
def test_the_version_header_equals_the_body(headers: list[tuple[str, str]], problem: str | None) -> None:
    """HTTP.2."""
    assert mismatch(check_version_header(head_of(*headers), "2026-07-28")) == problem


METHOD = ("Mcp-Method", "tasks/get")


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ([METHOD, ("Mcp-Name", "t-1")], None),
        ([("MCP-METHOD", "tasks/get"), ("mcp-name", "t-1")], None),
        ([METHOD, ("Mcp-Name", "  t-1\t")], None),
        ([METHOD, ("Mcp-Name", "=?base64?dC0x?=")], None),
        ([("Mcp-Name", "t-1")], "Mcp-Method is missing"),
        ([METHOD], "Mcp-Name is missing"),
        ([METHOD, ("Mcp-Name", "t-2")], "Mcp-Name differs from the body"),
        ([METHOD, ("Mcp-Name", "T-1")], "Mcp-Name differs from the body"),
        ([METHOD, ("Mcp-Name", "")], "Mcp-Name differs from the body"),
        ([METHOD, ("Mcp-Name", "=?base64?dC0y?=")], "Mcp-Name differs from the body"),
        ([METHOD, ("Mcp-Name", "=?base64?dC0x")], "Mcp-Name differs from the body"),
        ([METHOD, ("Mcp-Name", "=?base64?dC0?=")], "Mcp-Name is malformed"),
        ([METHOD, ("Mcp-Name", "t-1\x01")], "Mcp-Name is malformed"),
        ([METHOD, ("Mcp-Name", "t-1"), ("Mcp-Name", "t-1")], "Mcp-Name stands there more than once"),
        ([METHOD, METHOD, ("Mcp-Name", "t-1")], "Mcp-Method stands there more than once"),
        ([("Mcp-Method", "TASKS/GET"), ("Mcp-Name", "t-1")], "Mcp-Method differs from the body"),
        ([("Mcp-Method", "tasks/cancel"), ("Mcp-Name", "t-1")], "Mcp-Method differs from the body"),
    ],
)
def test_the_standard_headers_equal_the_body(headers: list[tuple[str, str]], problem: str | None) -> None:
    """HTTP.2; TRAPS 11 and 12."""
    error = check_standard_headers(head_of(*headers), "tasks/get", {"taskId": "t-1"})
    assert mismatch(error) == problem


def test_the_method_may_not_be_encoded() -> None:
    """Only ``Mcp-Name`` and ``Mcp-Param-*`` may: whoever routes by the method reads it as it stands."""
    head = head_of(("Mcp-Method", "=?base64?dG9vbHMvbGlzdA==?="))
    assert mismatch(check_standard_headers(head, "tools/list", {})) == "Mcp-Method differs from the body"


def test_a_literal_that_looks_encoded_must_be_encoded() -> None:
    name = "=?base64?literal?="
    params = {"name": name}
    plain = head_of(("Mcp-Method", "tools/call"), ("Mcp-Name", name))
    assert mismatch(check_standard_headers(plain, "tools/call", params)) == "Mcp-Name is malformed"
    encoded = head_of(("Mcp-Method", "tools/call"), ("Mcp-Name", encode_header_value(name)))
    assert check_standard_headers(encoded, "tools/call", params) is None


@pytest.mark.parametrize(
    ("method", "params"), [("tools/list", {}), ("tasks/get", {}), ("tasks/get", {"taskId": 5})]
)
def test_a_body_without_a_name_asks_for_no_name_header(method: str, params: dict[str, Any]) -> None:
    head = head_of(("Mcp-Method", method), ("Mcp-Name", "anything"))
    assert check_standard_headers(head, method, params) is None


def test_mismatches_do_not_repeat_what_was_sent() -> None:
    """SEC.2: a task id is a secret to some servers."""
    head = head_of(METHOD, ("Mcp-Name", "hunter2"))
    error = check_standard_headers(head, "tasks/get", {"taskId": "hunter3"})
    assert error is not None
    assert "hunter" not in str(error)


# -- headers from tool parameters --------------------------------------------------------------------


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def mirrored(header: str, kind: Any = "string", **more: Any) -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": header, **more}


def test_annotated_properties_are_found_in_order_and_in_depth() -> None:
    """HTTP.3."""
    found = header_parameters(
        schema(
            region=mirrored("Region"),
            query={"type": "string"},
            where={
                "type": "object",
                "properties": {"zone": mirrored("Zone-Id", "integer"), "anything": True},
            },
            dry=mirrored("Dry", "boolean"),
        )
    )
    assert [(one.header, one.path, one.type) for one in found] == [
        ("Mcp-Param-Region", ("region",), "string"),
        ("Mcp-Param-Zone-Id", ("where", "zone"), "integer"),
        ("Mcp-Param-Dry", ("dry",), "boolean"),
    ]


@pytest.mark.parametrize(
    "value", [{}, True, None, [], "text", {"properties": []}, {"properties": {"a": None}}]
)
def test_schemas_without_annotations_have_no_parameters(value: Any) -> None:
    assert header_parameters(value) == ()


def test_a_parameter_that_may_be_null_is_a_primitive_one() -> None:
    (found,) = header_parameters(schema(region=mirrored("Region", ["string", "null"])))
    assert found.type == "string"


@pytest.mark.parametrize(
    "name", ["", "My Region", "Region:Primary", "Région", "Region\t1", "a\r\nb", "\0", "(a)", 5, None, ["a"]]
)
def test_a_name_must_be_a_header_token(name: Any) -> None:
    """HTTP.3."""
    with pytest.raises(ValueError, match=r"must be a header token \(parameter value\)"):
        header_parameters(schema(value=mirrored(name)))


def test_sec2_what_a_schema_says_is_not_repeated() -> None:
    """The text reaches logs, and whoever asks a client why a call failed."""
    token = "Secret-0123"
    for broken in (
        schema(a=mirrored(f"{token} ")),
        schema(a=mirrored(token, "array")),
        schema(a=mirrored(token), b=mirrored(token)),
        {"not": mirrored(token)},
    ):
        with pytest.raises(ValueError, match="x-mcp-header") as caught:
            header_parameters(broken)
        assert token not in str(caught.value)


@pytest.mark.parametrize(
    "kind", ["number", "object", "array", "null", None, ["string", "integer"], ["null"], [], 5, {}]
)
def test_only_strings_integers_and_booleans_are_mirrored(kind: Any) -> None:
    with pytest.raises(ValueError, match="must be on a string, an integer or a boolean"):
        header_parameters(schema(value=mirrored("Value", kind)))


def test_a_type_must_be_stated() -> None:
    with pytest.raises(ValueError, match="must be on a string"):
        header_parameters(schema(value={"x-mcp-header": "Value"}))


@pytest.mark.parametrize(("one", "other"), [("Region", "Region"), ("MyField", "myfield")])
def test_names_are_unique_in_any_case(one: str, other: str) -> None:
    with pytest.raises(ValueError, match="has the header of another parameter"):
        header_parameters(schema(a=mirrored(one), b={"type": "object", "properties": {"c": mirrored(other)}}))


HIDDEN = schema(a=mirrored("A"))


@pytest.mark.parametrize(
    "unreachable",
    [
        mirrored("A"),
        {"items": mirrored("A")},
        {"prefixItems": [mirrored("A")]},
        {"properties": {"list": {"type": "array", "items": HIDDEN}}},
        {"oneOf": [{"type": "null"}, HIDDEN]},
        {"anyOf": [HIDDEN]},
        {"allOf": (HIDDEN,)},
        {"not": HIDDEN},
        {"if": HIDDEN},
        {"then": HIDDEN},
        {"else": HIDDEN},
        {"properties": {"x": {"allOf": [mirrored("A")]}}},
        {"additionalProperties": mirrored("A")},
        {"patternProperties": {"^a": mirrored("A")}},
        {"dependentSchemas": {"a": HIDDEN}},
        {"$defs": {"a": mirrored("A")}, "properties": {"a": {"$ref": "#/$defs/a"}}},
        {"definitions": {"a": HIDDEN}},
        {"some-vocabulary": {"of-its-own": [mirrored("A")]}},
    ],
)
def test_a_parameter_must_be_reached_through_properties_alone(unreachable: dict[str, Any]) -> None:
    """HTTP.3."""
    with pytest.raises(ValueError, match="through properties alone"):
        header_parameters(unreachable)


@pytest.mark.parametrize(
    "value",
    [
        schema(**{"x-mcp-header": {"type": "string"}}),
        schema(a={"type": "object", "default": mirrored("A"), "examples": [mirrored("A")]}),
        schema(a={"enum": [mirrored("A")]}, b={"const": mirrored("A")}),
        {"allOf": [schema(**{"x-mcp-header": {"type": "string"}})]},
        {"dependencies": {"x-mcp-header": ["a"]}},
    ],
)
def test_data_and_property_names_are_no_annotations(value: dict[str, Any]) -> None:
    assert header_parameters(value) == ()


def test_what_stands_before_the_properties_hides_none_of_them() -> None:
    found = header_parameters({"default": {}, "x": 1, **schema(a={"type": "string"}, b=mirrored("B"))})
    assert [parameter.path for parameter in found] == [("b",)]
    assert header_parameters({"examples": [], **HIDDEN}) == header_parameters(HIDDEN)


@pytest.mark.parametrize(
    "step", [lambda inner: {"properties": {"a": inner}}, lambda inner: {"not": inner}, lambda inner: [inner]]
)
def test_schemas_may_be_nested_64_levels_deep(step: Any) -> None:
    value: Any = True
    for _ in range(64):
        value = step(value)
    assert header_parameters(value) == ()
    with pytest.raises(ValueError, match="nested more than 64 levels deep"):
        header_parameters(step(value))


@pytest.mark.parametrize(
    "step", [lambda inner: {"properties": {"a": inner}}, lambda inner: {"not": inner}, lambda inner: [inner]]
)
def test_bottomless_schemas_are_refused(step: Any) -> None:
    value: Any = {}
    for _ in range(10_000):
        value = step(value)
    with pytest.raises(ValueError, match="nested more than"):
        header_parameters({"properties": {"a": value}})


REGION = HeaderParameter(header="Mcp-Param-Region", path=("region",), type="string")
COUNT = HeaderParameter(header="Mcp-Param-Count", path=("page", "count"), type="integer")
DRY = HeaderParameter(header="Mcp-Param-Dry", path=("dry",), type="boolean")


def parameter_problem(parameter: HeaderParameter, arguments: Any, *raw: str) -> str | None:
    head = head_of(*((parameter.header, value) for value in raw))
    problem = mismatch(check_parameter_headers(head, (parameter,), arguments))
    return None if problem is None else problem.removeprefix(parameter.header + " ")


@pytest.mark.parametrize(
    ("argument", "raw"),
    [
        ("us-west1", "us-west1"),
        ("us-west1", "=?base64?dXMtd2VzdDE=?="),
        ("Hello", "=?base64?SGVsbG8=?="),
        ("SGVsbG8=", "SGVsbG8="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("", ""),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("42", "42"),
    ],
)
def test_a_string_header_equals_its_argument(argument: str, raw: str) -> None:
    """HTTP.3."""
    assert parameter_problem(REGION, {"region": argument}, raw) is None


@pytest.mark.parametrize(
    ("argument", "raw", "problem"),
    [
        ("us-west1", "us-west2", "differs from the body"),
        ("us-west1", "US-WEST1", "differs from the body"),
        ("42", "42.0", "differs from the body"),
        ("Hello", "=?base64?SGVsbG8?=", "is malformed"),
        ("Hello", "=?base64?SGVs!!!bG8=?=", "is malformed"),
        ("caf\xe9", "caf\xe9", "is malformed"),
        ("a", None, "is missing"),
        (["a"], "a", "has an argument that no header can carry"),
        ({"a": 1}, None, "is missing"),
    ],
)
def test_other_string_headers_are_refused(argument: Any, raw: str | None, problem: str) -> None:
    assert parameter_problem(REGION, {"region": argument}, *(() if raw is None else (raw,))) == problem


def test_a_repeated_parameter_header_is_refused() -> None:
    assert parameter_problem(REGION, {"region": "a"}, "a", "a") == "stands there more than once"


@pytest.mark.parametrize("arguments", [{}, {"region": None}, None, [], "text"])
def test_without_an_argument_there_must_be_no_header(arguments: Any) -> None:
    """HTTP.3: not expected, and if it is there, someone on the way was told something else."""
    assert parameter_problem(REGION, arguments) is None
    assert parameter_problem(REGION, arguments, "us-west1") == "is there, but its argument is not"


@pytest.mark.parametrize(
    ("argument", "raw"),
    [
        (42, "42"),
        (42, "42.0"),
        (42, "042"),
        (42.0, "42"),
        (float(2**53 - 1), "9007199254740991"),
        (-7, "-7"),
        (0, "-0"),
        (0, "0.000"),
        (2**53 - 1, "9007199254740991"),
        (1 - 2**53, "-9007199254740991"),
    ],
)
def test_integers_are_compared_as_numbers(argument: Any, raw: str) -> None:
    """HTTP.3."""
    assert parameter_problem(COUNT, {"page": {"count": argument}}, raw) is None


@pytest.mark.parametrize(
    ("argument", "raw", "problem"),
    [
        (42, "43", "differs from the body"),
        (42, "42.5", "differs from the body"),
        (42, "4 2", "differs from the body"),
        (42, "0x2a", "differs from the body"),
        (42, "", "differs from the body"),
        (42, "9" * 5000, "differs from the body"),
        (1, "true", "differs from the body"),
        (2**53, "9007199254740992", "has an argument that no header can carry"),
        (-(2**53), "-9007199254740992", "has an argument that no header can carry"),
        pytest.param(10**5000, "1", "has an argument that no header can carry", id="huge"),
        (1.5, "1.5", "has an argument that no header can carry"),
        (1e300, "1", "has an argument that no header can carry"),
        (float("inf"), "1", "has an argument that no header can carry"),
    ],
)
def test_other_integer_headers_are_refused(argument: Any, raw: str, problem: str) -> None:
    assert parameter_problem(COUNT, {"page": {"count": argument}}, raw) == problem


@pytest.mark.parametrize("arguments", [{}, {"page": {}}, {"page": None}, {"page": "text"}, {"page": [1]}])
def test_a_path_that_leads_nowhere_has_no_argument(arguments: Any) -> None:
    assert parameter_problem(COUNT, arguments) is None


@pytest.mark.parametrize(
    ("argument", "raw", "problem"),
    [
        (True, "true", None),
        (False, "false", None),
        (True, "false", "differs from the body"),
        (True, "True", "differs from the body"),
        (True, "1", "differs from the body"),
    ],
)
def test_boolean_headers(argument: bool, raw: str, problem: str | None) -> None:
    assert parameter_problem(DRY, {"dry": argument}, raw) == problem


def test_the_first_parameter_that_differs_is_named() -> None:
    head = head_of(("Mcp-Param-Region", "a"), ("Mcp-Param-Dry", "hunter2"), ("Mcp-Param-Other", "ignored"))
    error = check_parameter_headers(head, (REGION, DRY), {"region": "a", "dry": True})
    assert mismatch(error) == "Mcp-Param-Dry differs from the body"


# -- the sender's side -------------------------------------------------------------------------------


def test_what_a_client_sends_with_a_call() -> None:
    """HTTP.2, HTTP.3."""
    params = {"name": "Übersicht", "arguments": {"region": " x ", "page": {"count": 3.0}, "dry": False}}
    assert request_headers("tools/call", params, "2026-07-28", (REGION, COUNT, DRY)) == [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "=?base64?w5xiZXJzaWNodA==?="),
        ("Mcp-Param-Region", "=?base64?IHgg?="),
        ("Mcp-Param-Count", "3"),
        ("Mcp-Param-Dry", "false"),
    ]


@pytest.mark.parametrize("arguments", [{}, {"arguments": {"region": None, "page": {}}}])
def test_what_is_absent_or_null_has_no_header(arguments: dict[str, Any]) -> None:
    names = [
        name for name, _ in request_headers("tools/call", {"name": "a", **arguments}, "v", (REGION, COUNT))
    ]
    assert names[-1] == "Mcp-Name"


def test_what_is_absent_hides_nothing_that_follows() -> None:
    """HTTP.3."""
    params = {"name": "a", "arguments": {"dry": True}}
    assert request_headers("tools/call", params, "v", (REGION, COUNT, DRY))[4:] == [
        ("Mcp-Name", "a"),
        ("Mcp-Param-Dry", "true"),
    ]


def test_task_requests_are_named_by_their_task() -> None:
    """HTTP.2; TRAPS 11."""
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert ("Mcp-Name", "t-1") in request_headers(method, {"taskId": "t-1"}, "v")


def test_what_no_header_can_carry_is_the_hosts_error() -> None:
    with pytest.raises(LocalProtocolError, match="the method"):
        request_headers("tâches/get", {}, "v")
    argument: Any
    for argument in ({}, [], 1.5, 2**53):
        with pytest.raises(LocalProtocolError, match="Mcp-Param-Region"):
            request_headers("tools/call", {"arguments": {"region": argument}}, "v", (REGION,))


@pytest.mark.parametrize("header", ["", "Mcp-Param-Ü", "Mcp-Param-A: b", "Mcp-Param-A\r\nB"])
def test_http3_what_is_mirrored_is_named_by_a_token(header: str) -> None:
    with pytest.raises(ValueError, match="token"):
        HeaderParameter(header=header, path=("a",), type="string")


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(1 - 2**53, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
)


@settings(deadline=None)
@given(
    name=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    region=SCALARS,
    count=SCALARS,
    dry=SCALARS,
)
def test_a_server_takes_what_a_client_sends(name: str, region: Any, count: Any, dry: Any) -> None:
    """HTTP.2, HTTP.3: the two sides agree for every name and every argument."""
    arguments = {"region": region, "page": {"count": count}, "dry": dry}
    params = {"name": name, "arguments": arguments}
    sent = request_headers("tools/call", params, "2026-07-28", (REGION, COUNT, DRY))
    headers = [(b"host", b"localhost"), *((key.encode(), value.encode("ascii")) for key, value in sent)]
    head = check_head(b"POST", b"/mcp", headers, POLICY, LIMITS)
    assert isinstance(head, HttpHead)
    assert head.accepts_stream
    assert check_version_header(head, "2026-07-28") is None
    assert check_standard_headers(head, "tools/call", params) is None
    assert check_parameter_headers(head, (REGION, COUNT, DRY), arguments) is None
