"""HTTP.2, HTTP.3: values in headers, and which headers there are, both ways."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

from docs.vector_sources.making import Vector, spec, table

HTTP: Final = "basic/transports/streamable-http"
ENCODING: Final = spec(HTTP, "value-encoding")
STANDARD: Final = spec(HTTP, "standard-request-headers")
VALIDATION: Final = spec(HTTP, "server-validation")
SCHEMA: Final = spec(HTTP, "schema-extension")
CLIENT: Final = spec(HTTP, "client-behavior")
CUSTOM: Final = spec(HTTP, "server-behavior-for-custom-headers")
ROUTING: Final = "specification/draft/tasks.md#streamable-http-routing-headers"


def sealed(value: str | bytes) -> str:
    """Return a value between the markers."""
    data = value.encode() if isinstance(value, str) else value
    return f"=?base64?{b64encode(data).decode()}?="


# -- one value -------------------------------------------------------------------------------------------

ENCODED: Final = [
    ("plain", "visible ASCII stays as it is", "us-west1", "us-west1"),
    ("empty", "nothing is nothing", "", ""),
    ("one-letter", "one visible character", "x", "x"),
    ("inner-space", "a space inside is safe", "get weather", "get weather"),
    ("inner-tab", "a tab inside is safe", "a\tb", "a\tb"),
    ("all-visible", "punctuation is safe", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", None),
    ("uri", "a URI is safe", "file:///projects/myapp/config.json", "file:///projects/myapp/config.json"),
    ("non-ascii", "the specification's example", "Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    ("padded", "the specification's example", " padded ", "=?base64?IHBhZGRlZCA=?="),
    ("newline", "the specification's example", "line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    (
        "looks-encoded",
        "the specification's example: what looks encoded is encoded",
        "=?base64?literal?=",
        "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
    ),
    ("leading-space", "whitespace at the edge would be lost", " a", sealed(" a")),
    ("trailing-space", "whitespace at the edge would be lost", "a ", sealed("a ")),
    ("leading-tab", "whitespace at the edge would be lost", "\ta", sealed("\ta")),
    ("trailing-tab", "whitespace at the edge would be lost", "a\t", sealed("a\t")),
    ("one-space", "whitespace alone would be lost", " ", sealed(" ")),
    ("carriage-return", "a header cannot be broken out of", "a\r\nX-Evil: 1", sealed("a\r\nX-Evil: 1")),
    ("nul", "no control characters", "a\0b", sealed("a\0b")),
    ("delete", "no control characters", "a\x7fb", sealed("a\x7fb")),
    ("latin-1", "not ASCII, whatever HTTP libraries allow", "café", sealed("café")),
    ("emoji", "beyond the basic plane", "🎬", sealed("🎬")),
    ("empty-inside-markers", "the markers alone look encoded", "=?base64??=", sealed("=?base64??=")),
    ("prefix-only", "without the suffix it does not look encoded", "=?base64?abc", "=?base64?abc"),
    ("suffix-only", "without the prefix it does not look encoded", "abc?=", "abc?="),
    ("upper-case-markers", "the markers are lower case", "=?BASE64?YQ==?=", "=?BASE64?YQ==?="),
    ("markers-inside", "only at both ends do they mark", "a=?base64?YQ==?=b", "a=?base64?YQ==?=b"),
]

DECODED: Final = [
    ("plain", "visible ASCII is itself", "us-west1", "us-west1"),
    ("empty", "nothing is nothing", "", ""),
    ("spaces-inside", "spaces inside stay", "a  b", "a  b"),
    ("non-ascii", "the specification's example", "=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界"),
    ("padded", "the specification's example", "=?base64?IHBhZGRlZCA=?=", " padded "),
    ("newline", "the specification's example", "=?base64?bGluZTEKbGluZTI=?=", "line1\nline2"),
    (
        "looks-encoded",
        "the specification's example: decoded once, not twice",
        "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
        "=?base64?literal?=",
    ),
    ("needless", "encoding what need not be is allowed", sealed("render"), "render"),
    ("empty-encoded", "an encoded nothing", "=?base64??=", ""),
    ("upper-case-markers", "markers are case-sensitive: this is plain", "=?BASE64?YQ==?=", "=?BASE64?YQ==?="),
    ("prefix-only", "a plain value", "=?base64?YQ==", "=?base64?YQ=="),
    ("not-utf-8", "Base64 of bytes that are no UTF-8", sealed(b"\xff\xfe"), None),
    ("surrogate", "a surrogate in UTF-8 is no UTF-8", sealed(b"\xed\xa0\x80"), None),
    ("overlong", "an overlong form is no UTF-8", sealed(b"\xc0\xaf"), None),
    ("no-padding", "padding belongs to it", "=?base64?YQ?=", None),
    ("half-padding", "all of the padding", "=?base64?YQ=?=", None),
    ("stray-character", "no stray characters", "=?base64?Y Q==?=", None),
    ("url-alphabet", "the standard alphabet, not that of URLs", "=?base64?_-8=?=", None),
    ("trailing-bits", "one value has one encoding", "=?base64?YR==?=", None),
    ("data-after-padding", "nothing after the padding", "=?base64?YQ==YQ==?=", None),
    ("latin-1", "characters beyond ASCII are invalid", "café", None),
    ("delete", "control characters are invalid", "a\x7fb", None),
    ("nul", "control characters are invalid", "a\0b", None),
]

# -- which headers there must be -------------------------------------------------------------------------

VERSION: Final = ("MCP-Protocol-Version", "2026-07-28")
META: Final[dict[str, Any]] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
ACCEPTED: Final[dict[str, Any]] = {"accepted": True}
MISMATCH: Final[dict[str, Any]] = {"code": -32020, "http_status": 400}


def call(name: str = "render", **arguments: Any) -> dict[str, Any]:
    """Return what a header check looks at in a call."""
    return {"method": "tools/call", "params": {"name": name, "arguments": arguments, "_meta": META}}


def message(method: str, **params: Any) -> dict[str, Any]:
    """Return what a header check looks at in a message."""
    return {"method": method, "params": {**params, "_meta": META}}


def head(*headers: tuple[str, str], version: bool = True) -> list[list[str]]:
    """Return headers as they come in, the version first."""
    return [list(header) for header in ((VERSION, *headers) if version else headers)]


def checked(headers: list[list[str]], of: dict[str, Any]) -> dict[str, Any]:
    """Return what the check of the standard headers is given."""
    return {"headers": headers, "message": of}


RENDER: Final = head(("Mcp-Method", "tools/call"), ("Mcp-Name", "render"))


def standard(*headers: tuple[str, str], name: str = "render", version: bool = True) -> dict[str, Any]:
    """Return the check of a call's headers."""
    return checked(head(*headers, version=version), call(name))


METHOD: Final = ("Mcp-Method", "tools/call")

CHECKED: Final = [
    ("call", "all three are there and right", standard(METHOD, ("Mcp-Name", "render")), ACCEPTED),
    (
        "names-any-case",
        "header names have no case",
        standard(
            ("mcp-protocol-VERSION", "2026-07-28"),
            ("MCP-METHOD", "tools/call"),
            ("mcp-name", "render"),
            version=False,
        ),
        ACCEPTED,
    ),
    (
        "edges-trimmed",
        "HTTP takes whitespace around a value away",
        standard(METHOD, ("Mcp-Name", " \trender \t")),
        ACCEPTED,
    ),
    (
        "encoded-name",
        "encoded, though it need not be",
        standard(METHOD, ("Mcp-Name", sealed("render"))),
        ACCEPTED,
    ),
    (
        "encoded-world",
        "a name beyond ASCII",
        standard(METHOD, ("Mcp-Name", sealed("世界")), name="世界"),
        ACCEPTED,
    ),
    (
        "no-version",
        "the version is missing",
        standard(METHOD, ("Mcp-Name", "render"), version=False),
        MISMATCH,
    ),
    (
        "other-version",
        "the version is another one",
        standard(("MCP-Protocol-Version", "2025-11-25"), METHOD, ("Mcp-Name", "render"), version=False),
        MISMATCH,
    ),
    (
        "encoded-version",
        "a version is never encoded",
        standard(
            ("MCP-Protocol-Version", sealed("2026-07-28")), METHOD, ("Mcp-Name", "render"), version=False
        ),
        MISMATCH,
    ),
    (
        "version-twice",
        "the version stands there twice, the same",
        standard(VERSION, METHOD, ("Mcp-Name", "render")),
        MISMATCH,
    ),
    ("no-method", "the method is missing", standard(("Mcp-Name", "render")), MISMATCH),
    (
        "other-method",
        "the method is another one",
        standard(("Mcp-Method", "tools/list"), ("Mcp-Name", "render")),
        MISMATCH,
    ),
    (
        "method-case",
        "values are exact",
        standard(("Mcp-Method", "Tools/Call"), ("Mcp-Name", "render")),
        MISMATCH,
    ),
    (
        "encoded-method",
        "a method is never encoded",
        standard(("Mcp-Method", sealed("tools/call")), ("Mcp-Name", "render")),
        MISMATCH,
    ),
    (
        "method-twice",
        "the method stands there twice",
        standard(METHOD, METHOD, ("Mcp-Name", "render")),
        MISMATCH,
    ),
    ("no-name", "the name is missing", standard(METHOD), MISMATCH),
    ("other-name", "the name is another one", standard(METHOD, ("Mcp-Name", "paint")), MISMATCH),
    ("name-case", "values are exact", standard(METHOD, ("Mcp-Name", "Render")), MISMATCH),
    ("empty-name", "an empty value is none", standard(METHOD, ("Mcp-Name", "")), MISMATCH),
    (
        "name-twice",
        "the name stands there twice",
        standard(METHOD, ("Mcp-Name", "render"), ("Mcp-Name", "render")),
        MISMATCH,
    ),
    (
        "two-names",
        "one of two names is right",
        standard(METHOD, ("Mcp-Name", "render"), ("Mcp-Name", "paint")),
        MISMATCH,
    ),
    (
        "broken-name",
        "an encoding that is broken",
        standard(METHOD, ("Mcp-Name", "=?base64?cmVuZGVy??=")),
        MISMATCH,
    ),
    ("latin-name", "raw bytes beyond ASCII", standard(METHOD, ("Mcp-Name", "café"), name="café"), MISMATCH),
    (
        "encoded-other",
        "it decodes to another name",
        standard(METHOD, ("Mcp-Name", sealed("paint"))),
        MISMATCH,
    ),
    (
        "looks-encoded-unencoded",
        "a tool called like an encoded value has to be encoded",
        standard(METHOD, ("Mcp-Name", "=?base64?cmVuZGVy?="), name="=?base64?cmVuZGVy?="),
        MISMATCH,
    ),
    (
        "no-name-needed",
        "a method without a name needs no Mcp-Name",
        checked(head(("Mcp-Method", "tools/list")), message("tools/list")),
        ACCEPTED,
    ),
    (
        "name-not-needed",
        "nor is one looked at",
        checked(head(("Mcp-Method", "tools/list"), ("Mcp-Name", "x")), message("tools/list")),
        ACCEPTED,
    ),
    (
        "session-ignored",
        "Mcp-Session-Id and Last-Event-ID mean nothing",
        checked([*RENDER, ["Mcp-Session-Id", "x"], ["Last-Event-ID", "7"]], call()),
        ACCEPTED,
    ),
    (
        "resource",
        "a resource is named by its uri",
        checked(
            head(("Mcp-Method", "resources/read"), ("Mcp-Name", "file:///a b")),
            message("resources/read", uri="file:///a b"),
        ),
        ACCEPTED,
    ),
    (
        "resource-other",
        "a resource is named by its uri",
        checked(
            head(("Mcp-Method", "resources/read"), ("Mcp-Name", "file:///b")),
            message("resources/read", uri="file:///a"),
        ),
        MISMATCH,
    ),
    (
        "prompt",
        "a prompt is named by its name",
        checked(
            head(("Mcp-Method", "prompts/get"), ("Mcp-Name", "greet")), message("prompts/get", name="greet")
        ),
        ACCEPTED,
    ),
    (
        "prompt-missing",
        "a prompt is named by its name",
        checked(head(("Mcp-Method", "prompts/get")), message("prompts/get", name="greet")),
        MISMATCH,
    ),
]

TASK_HEADERS: Final = [
    row
    for verb in ("get", "update", "cancel")
    for row in (
        (
            f"task-{verb}",
            f"tasks/{verb} is named by its taskId",
            checked(
                head(("Mcp-Method", f"tasks/{verb}"), ("Mcp-Name", "t-1")),
                message(f"tasks/{verb}", taskId="t-1"),
            ),
            ACCEPTED,
        ),
        (
            f"task-{verb}-encoded",
            "trap 12: the right id, encoded",
            checked(
                head(("Mcp-Method", f"tasks/{verb}"), ("Mcp-Name", sealed("t-1"))),
                message(f"tasks/{verb}", taskId="t-1"),
            ),
            ACCEPTED,
        ),
        (
            f"task-{verb}-missing",
            "trap 11: without Mcp-Name",
            checked(head(("Mcp-Method", f"tasks/{verb}")), message(f"tasks/{verb}", taskId="t-1")),
            MISMATCH,
        ),
        (
            f"task-{verb}-other",
            "trap 11: with the name of another task",
            checked(
                head(("Mcp-Method", f"tasks/{verb}"), ("Mcp-Name", "t-2")),
                message(f"tasks/{verb}", taskId="t-1"),
            ),
            MISMATCH,
        ),
    )
]

REPEATED: Final = ("version-twice", "method-twice", "name-twice", "two-names")
"""The specification does not speak of headers that are repeated."""
UNNAMED: Final = ("task-get-missing", "task-update-missing", "task-cancel-missing")
"""Clients must send it; what a server does without it is left open."""

# -- annotations -----------------------------------------------------------------------------------------


def annotated(header: Any = "Region", **schema: Any) -> dict[str, Any]:
    """Return the schema of one annotated parameter."""
    return {"type": "string", "x-mcp-header": header, **schema}


def properties(**named: Any) -> dict[str, Any]:
    """Return the schema of an object."""
    return {"type": "object", "properties": named}


def mirrored(*parameters: tuple[str, list[str]]) -> dict[str, Any]:
    """Return the parameters that are to be mirrored."""
    return {"valid": True, "parameters": [{"header": header, "path": path} for header, path in parameters]}


REGION: Final = properties(region=annotated())
ONE: Final = mirrored(("Mcp-Param-Region", ["region"]))
INVALID: Final[dict[str, Any]] = {"valid": False}


def of_schema(schema: Any) -> dict[str, Any]:
    """Return what the reader of annotations is given."""
    return {"input_schema": schema}


ANNOTATIONS: Final = [
    ("none", "a schema without annotations", of_schema(properties(a={"type": "string"})), mirrored()),
    ("string", "a string", of_schema(REGION), ONE),
    ("integer", "an integer", of_schema(properties(region=annotated(type="integer"))), ONE),
    ("boolean", "a boolean", of_schema(properties(region=annotated(type="boolean"))), ONE),
    (
        "token",
        "every token character is allowed",
        of_schema(properties(region=annotated("!#$%&'*+-.^_`|~09aZ"))),
        mirrored(("Mcp-Param-!#$%&'*+-.^_`|~09aZ", ["region"])),
    ),
    (
        "nested",
        "inside another object, by properties alone",
        of_schema(properties(where=properties(region=annotated()))),
        mirrored(("Mcp-Param-Region", ["where", "region"])),
    ),
    (
        "two",
        "two parameters, in the schema's order",
        of_schema(properties(b=annotated("B"), a=annotated("A"))),
        mirrored(("Mcp-Param-B", ["b"]), ("Mcp-Param-A", ["a"])),
    ),
    (
        "property-called-items",
        "a property may be called like a keyword",
        of_schema(properties(items=annotated())),
        mirrored(("Mcp-Param-Region", ["items"])),
    ),
    (
        "in-data",
        "what stands in an example is no annotation",
        of_schema({**properties(a={"type": "string"}), "examples": [{"x-mcp-header": ""}]}),
        mirrored(),
    ),
    (
        "number",
        "a number is none of the three types",
        of_schema(properties(region=annotated(type="number"))),
        INVALID,
    ),
    ("object", "nor is an object", of_schema(properties(region=annotated(type="object"))), INVALID),
    ("array", "nor is an array", of_schema(properties(region=annotated(type="array"))), INVALID),
    ("no-type", "a type has to be said", of_schema(properties(region={"x-mcp-header": "Region"})), INVALID),
    ("empty", "a name is not empty", of_schema(properties(region=annotated(""))), INVALID),
    ("space", "a name is a token", of_schema(properties(region=annotated("My Region"))), INVALID),
    ("colon", "a name is a token", of_schema(properties(region=annotated("Region:"))), INVALID),
    (
        "newline",
        "a header cannot be broken out of",
        of_schema(properties(region=annotated("A\r\nB"))),
        INVALID,
    ),
    ("non-ascii", "a name is a token", of_schema(properties(region=annotated("Région"))), INVALID),
    ("not-a-string", "a name is a string", of_schema(properties(region=annotated(1))), INVALID),
    ("twice", "two of the same name", of_schema(properties(a=annotated("A"), b=annotated("A"))), INVALID),
    (
        "twice-any-case",
        "names have no case",
        of_schema(properties(a=annotated("Region"), b=annotated("REGION"))),
        INVALID,
    ),
    ("root", "the root is no parameter", of_schema({**properties(), "x-mcp-header": "Region"}), INVALID),
    ("items", "not through items", of_schema(properties(a={"type": "array", "items": annotated()})), INVALID),
    (
        "items-properties",
        "not through items, however far below",
        of_schema(properties(a={"type": "array", "items": properties(region=annotated())})),
        INVALID,
    ),
    (
        "ref",
        "not through $ref",
        of_schema({**properties(a={"$ref": "#/$defs/r"}), "$defs": {"r": annotated()}}),
        INVALID,
    ),
    *(
        (f"in-{keyword}", f"not through {keyword}", of_schema({"type": "object", keyword: value}), INVALID)
        for keyword, value in (
            ("oneOf", [properties(region=annotated())]),
            ("anyOf", [properties(region=annotated())]),
            ("allOf", [properties(region=annotated())]),
            ("not", properties(region=annotated())),
            ("if", properties(region=annotated())),
            ("then", properties(region=annotated())),
            ("else", properties(region=annotated())),
            ("additionalProperties", annotated()),
            ("patternProperties", {"^r": annotated()}),
        )
    ),
]


def parameter(
    argument: Any, *headers: tuple[str, str], kind: str = "string", schema: Any = None, **others: Any
) -> dict[str, Any]:
    """Return the check of the header that mirrors ``region``, or what ``schema`` annotates."""
    return {
        "input_schema": schema or properties(region=annotated(type=kind)),
        "arguments": argument if schema else ({} if argument is ... else {"region": argument}),
        "headers": [list(header) for header in headers],
    }


def region(value: str) -> tuple[str, str]:
    """Return the header."""
    return ("Mcp-Param-Region", value)


NESTED: Final = properties(where=properties(region=annotated()))

PARAMETERS: Final = [
    ("same", "the header equals its argument", parameter("us", region("us")), ACCEPTED),
    ("any-case-name", "header names have no case", parameter("us", ("mcp-param-REGION", "us")), ACCEPTED),
    ("encoded", "encoded, as it has to be", parameter("Zürich", region(sealed("Zürich"))), ACCEPTED),
    ("encoded-needless", "encoded, as it need not be", parameter("us", region(sealed("us"))), ACCEPTED),
    ("empty", "an empty string is a value", parameter("", region("")), ACCEPTED),
    ("integer", "an integer in decimal", parameter(-7, region("-7"), kind="integer"), ACCEPTED),
    ("integer-as-number", "compared as numbers", parameter(42, region("42.0"), kind="integer"), ACCEPTED),
    (
        "integer-safe",
        "the largest safe integer",
        parameter(2**53 - 1, region("9007199254740991"), kind="integer"),
        ACCEPTED,
    ),
    ("true", "in lower case", parameter(True, region("true"), kind="boolean"), ACCEPTED),
    ("false", "in lower case", parameter(False, region("false"), kind="boolean"), ACCEPTED),
    ("absent", "no argument, no header", parameter(...), ACCEPTED),
    ("null", "null has no header", parameter(None), ACCEPTED),
    (
        "nested",
        "an argument inside another",
        parameter({"where": {"region": "us"}}, region("us"), schema=NESTED),
        ACCEPTED,
    ),
    ("nested-absent", "nothing at the path", parameter({"where": {}}, schema=NESTED), ACCEPTED),
    ("nested-elsewhere", "the path is exact", parameter({"region": "us"}, schema=NESTED), ACCEPTED),
    (
        "unknown-header",
        "a header that nobody annotated is ignored",
        parameter("us", region("us"), ("Mcp-Param-Size", "9")),
        ACCEPTED,
    ),
    ("missing", "an argument without its header", parameter("us"), MISMATCH),
    ("different", "another value", parameter("us", region("eu")), MISMATCH),
    ("case", "values are exact", parameter("us", region("US")), MISMATCH),
    ("without-argument", "a header without its argument", parameter(..., region("us")), MISMATCH),
    ("with-null", "a header for null", parameter(None, region("null")), MISMATCH),
    ("twice", "the header stands there twice", parameter("us", region("us"), region("us")), MISMATCH),
    ("malformed", "broken Base64", parameter("us", region("=?base64?%%?=")), MISMATCH),
    ("latin-1", "raw bytes beyond ASCII", parameter("é", region("é")), MISMATCH),
    ("true-case", "booleans are in lower case", parameter(True, region("True"), kind="boolean"), MISMATCH),
    ("integer-different", "another number", parameter(42, region("43"), kind="integer"), MISMATCH),
    ("integer-fraction", "no whole number", parameter(42, region("42.5"), kind="integer"), MISMATCH),
    ("integer-text", "no number at all", parameter(42, region("forty-two"), kind="integer"), MISMATCH),
    ("string-not-as-number", "strings are no numbers", parameter("42", region("42.0")), MISMATCH),
    ("object", "an object can stand in no header", parameter({}, region("{}")), MISMATCH),
    (
        "nested-missing",
        "an argument inside another, without its header",
        parameter({"where": {"region": "us"}}, schema=NESTED),
        MISMATCH,
    ),
]


# -- what a client sends ---------------------------------------------------------------------------------


def to_send(of: dict[str, Any], schema: Any = None) -> dict[str, Any]:
    """Return what the writer of headers is given."""
    return {"version": "2026-07-28", "message": of, **({} if schema is None else {"input_schema": schema})}


def sent(*headers: tuple[str, str]) -> dict[str, Any]:
    """Return the headers to send, in any order of theirs."""
    return {
        "headers": {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-protocol-version": "2026-07-28",
            **{name.lower(): value for name, value in headers},
        }
    }


SENT: Final = [
    ("list", "method and version", to_send(message("tools/list")), sent(("Mcp-Method", "tools/list"))),
    ("call", "a call has a name", to_send(call()), sent(METHOD, ("Mcp-Name", "render"))),
    (
        "call-encoded",
        "a name that has to be encoded",
        to_send(call("世界")),
        sent(METHOD, ("Mcp-Name", sealed("世界"))),
    ),
    (
        "resource",
        "a resource has its uri",
        to_send(message("resources/read", uri="file:///a")),
        sent(("Mcp-Method", "resources/read"), ("Mcp-Name", "file:///a")),
    ),
    (
        "prompt",
        "a prompt has its name",
        to_send(message("prompts/get", name="greet")),
        sent(("Mcp-Method", "prompts/get"), ("Mcp-Name", "greet")),
    ),
    *(
        (
            f"task-{verb}",
            f"trap 11: tasks/{verb} has its taskId",
            to_send(message(f"tasks/{verb}", taskId="t-1")),
            sent(("Mcp-Method", f"tasks/{verb}"), ("Mcp-Name", "t-1")),
        )
        for verb in ("get", "update", "cancel")
    ),
    (
        "listen",
        "a listen request has no name",
        to_send(message("subscriptions/listen", notifications={"taskIds": ["t-1"]})),
        sent(("Mcp-Method", "subscriptions/listen")),
    ),
]

MIRRORED: Final = [
    (
        "string",
        "an annotated argument",
        to_send(call(region="us"), REGION),
        sent(METHOD, ("Mcp-Name", "render"), region("us")),
    ),
    ("null", "null has no header", to_send(call(region=None), REGION), sent(METHOD, ("Mcp-Name", "render"))),
    ("absent", "no argument, no header", to_send(call(), REGION), sent(METHOD, ("Mcp-Name", "render"))),
    (
        "encoded",
        "encoded, as it has to be",
        to_send(call(region=" us"), REGION),
        sent(METHOD, ("Mcp-Name", "render"), region(sealed(" us"))),
    ),
    (
        "integer",
        "in decimal",
        to_send(call(region=-7), properties(region=annotated(type="integer"))),
        sent(METHOD, ("Mcp-Name", "render"), region("-7")),
    ),
    (
        "boolean",
        "in lower case",
        to_send(call(region=True), properties(region=annotated(type="boolean"))),
        sent(METHOD, ("Mcp-Name", "render"), region("true")),
    ),
    (
        "nested",
        "from its exact path",
        to_send(call(where={"region": "us"}, region="eu"), NESTED),
        sent(METHOD, ("Mcp-Name", "render"), region("us")),
    ),
    (
        "not-annotated",
        "other arguments stay in the body",
        to_send(call(region="us", size=3), REGION),
        sent(METHOD, ("Mcp-Name", "render"), region("us")),
    ),
]


def vectors() -> list[Vector]:
    """Return all of them."""
    encoded = [
        (word, says, {"value": value}, {"header": value if header is None else header})
        for word, says, value, header in ENCODED
    ]
    decoded = [
        (word, says, {"header": header}, {"malformed": True} if value is None else {"value": value})
        for word, says, header, value in DECODED
    ]
    return [
        *table("encode_header_value", "HTTP.2", ENCODING, encoded),
        *table("decode_header_value", "HTTP.2", ENCODING, decoded),
        *table("check_standard_headers", "HTTP.2", VALIDATION, CHECKED, ours=REPEATED),
        *table("check_standard_headers", "HTTP.2", ROUTING, TASK_HEADERS, ours=UNNAMED),
        *table("request_headers", "HTTP.2", STANDARD, SENT),
        *table("header_parameters", "HTTP.3", SCHEMA, ANNOTATIONS),
        *table("check_parameter_headers", "HTTP.3", CUSTOM, PARAMETERS),
        *table("request_headers", "HTTP.3", CLIENT, MIRRORED),
    ]
