"""WIRE, STD: what is a message, and where one ends on a stream of bytes."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

from docs.vector_sources.making import Vector, decided, spec, table

MESSAGES: Final = spec("basic/index", "messages")
REQUESTS: Final = spec("basic/index", "requests")
STDIO: Final = "basic/transports/stdio"

ANY_TEXT: Final[dict[str, Any]] = {"$any": "string"}


def text(written: str, **limits: int) -> dict[str, Any]:
    """Return bytes that are UTF-8, and bounds where they are other than usual."""
    return {"text": written, **({"limits": limits} if limits else {})}


def raw(data: bytes) -> dict[str, Any]:
    """Return any bytes."""
    return {"base64": b64encode(data).decode()}


def refused(code: int, **members: Any) -> dict[str, Any]:
    """Return the reply to what is no message. Without an id, there is no such member."""
    return {"reply": {"jsonrpc": "2.0", **members, "error": {"$has": {"code": code, "message": ANY_TEXT}}}}


def limited(limit: str) -> dict[str, Any]:
    """Return the reply to what runs over a bound, which it names."""
    return {
        "reply": {
            "jsonrpc": "2.0",
            "error": {"$has": {"code": -32600, "message": ANY_TEXT, "data": {"$has": {"reason": limit}}}},
        }
    }


UNREADABLE: Final = refused(-32700)

KINDS: Final = [
    (
        "request",
        "a request",
        text('{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}'),
        {"kind": "request", "id": 1, "method": "ping"},
    ),
    (
        "request-string-id",
        "an id may be a string",
        text('{"jsonrpc":"2.0","id":"1","method":"ping"}'),
        {"kind": "request", "id": "1", "method": "ping"},
    ),
    (
        "request-empty-id",
        "even an empty one",
        text('{"jsonrpc":"2.0","id":"","method":"ping"}'),
        {"kind": "request", "id": "", "method": "ping"},
    ),
    (
        "request-negative-id",
        "an id may be any integer",
        text('{"jsonrpc":"2.0","id":-7,"method":"ping"}'),
        {"kind": "request", "id": -7, "method": "ping"},
    ),
    (
        "request-extra",
        "members that nobody knows are tolerated",
        text('{"jsonrpc":"2.0","id":1,"method":"ping","x":[]}'),
        {"kind": "request", "id": 1, "method": "ping"},
    ),
    (
        "notification",
        "no id: a notification",
        text('{"jsonrpc":"2.0","method":"notifications/x"}'),
        {"kind": "notification", "method": "notifications/x"},
    ),
    ("result", "a response", text('{"jsonrpc":"2.0","id":1,"result":{}}'), {"kind": "response", "id": 1}),
    (
        "error",
        "a response",
        text('{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"x"}}'),
        {"kind": "response", "id": "a"},
    ),
    (
        "error-without-id",
        "who could not read the id has none",
        text('{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}'),
        {"kind": "response", "id": None},
    ),
    (
        "spaces",
        "whitespace around it means nothing",
        text(' \t\r\n{"jsonrpc":"2.0","id":1,"method":"ping"}\n'),
        {"kind": "request", "id": 1, "method": "ping"},
    ),
    (
        "escapes",
        "escapes are characters",
        text('{"jsonrpc":"2.0","id":"\\u4e16","method":"p\\u0069ng"}'),
        {"kind": "request", "id": "世", "method": "ping"},
    ),
]

NO_JSON: Final = [
    ("empty", "nothing", text(""), UNREADABLE),
    ("text", "no JSON", text("hello"), UNREADABLE),
    ("cut", "cut off", text('{"jsonrpc":"2.0"'), UNREADABLE),
    ("two-values", "two values", text('{"jsonrpc":"2.0","id":1,"method":"a"}{}'), UNREADABLE),
    ("comma", "a comma too many", text('{"jsonrpc":"2.0","id":1,"method":"a",}'), UNREADABLE),
    ("single-quotes", "other quotes", text("{'jsonrpc':'2.0'}"), UNREADABLE),
    ("comment", "JSON has no comments", text('{"jsonrpc":"2.0"/**/}'), UNREADABLE),
    ("not-utf-8", "bytes that are no UTF-8", raw(b'{"jsonrpc":"2.0","id":"\xff"}'), UNREADABLE),
    ("utf-16", "another encoding", raw('{"jsonrpc":"2.0"}'.encode("utf-16-le")), UNREADABLE),
]

STRICT: Final = [
    ("nan", "NaN is no JSON", text('{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":NaN}}'), UNREADABLE),
    (
        "infinity",
        "nor is Infinity",
        text('{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":-Infinity}}'),
        UNREADABLE,
    ),
    (
        "overflow",
        "nor a number that is none",
        text('{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1e999}}'),
        UNREADABLE,
    ),
    ("duplicate", "a member twice", text('{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}'), UNREADABLE),
    (
        "duplicate-inside",
        "a member twice, further in",
        text('{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":{"y":1,"y":1}}}'),
        UNREADABLE,
    ),
    (
        "duplicate-escaped",
        "however it is written",
        text('{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1,"\\u0078":2}}'),
        UNREADABLE,
    ),
    ("surrogate", "half of a pair", text('{"jsonrpc":"2.0","id":"\\ud83c","method":"a"}'), UNREADABLE),
    ("surrogate-low", "the other half", text('{"jsonrpc":"2.0","id":"\\udfac","method":"a"}'), UNREADABLE),
    (
        "surrogates-swapped",
        "both halves, in the wrong order",
        text('{"jsonrpc":"2.0","id":"\\udfac\\ud83c","method":"a"}'),
        UNREADABLE,
    ),
    (
        "pair",
        "a pair is a character",
        text('{"jsonrpc":"2.0","id":"\\ud83c\\udfac","method":"a"}'),
        {"kind": "request", "id": "🎬", "method": "a"},
    ),
    (
        "escaped-backslash",
        "an escaped backslash begins no escape",
        text('{"jsonrpc":"2.0","id":"\\\\ud83c","method":"a"}'),
        {"kind": "request", "id": "\\ud83c", "method": "a"},
    ),
    (
        "byte-order-mark",
        "no byte order mark",
        raw(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"a"}'),
        UNREADABLE,
    ),
    (
        "control-character",
        "no control characters in strings",
        text('{"jsonrpc":"2.0","id":"\x01","method":"a"}'),
        UNREADABLE,
    ),
    (
        "depth-64",
        "64 levels",
        text('{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":' + "[" * 62 + "]" * 62 + "}}"),
        {"kind": "request", "id": 1, "method": "a"},
    ),
    (
        "depth-65",
        "65 levels",
        text('{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":' + "[" * 63 + "]" * 63 + "}}"),
        limited("message_depth"),
    ),
    (
        "depth-huge",
        "far too deep: an error, no crash",
        text("[" * 3000 + "]" * 3000),
        limited("message_depth"),
    ),
    (
        "brackets-in-text",
        "brackets in a string are no levels",
        text('{"jsonrpc":"2.0","id":"' + "[" * 90 + '","method":"a"}'),
        {"kind": "request", "id": "[" * 90, "method": "a"},
    ),
    (
        "size-exact",
        "at the bound",
        text('{"jsonrpc":"2.0","id":1,"method":"a"}', message_bytes=37),
        {"kind": "request", "id": 1, "method": "a"},
    ),
    (
        "size-over",
        "a byte over it",
        text('{"jsonrpc":"2.0","id":1,"method":"a"} ', message_bytes=37),
        limited("message_bytes"),
    ),
]

NO_MESSAGE: Final = [
    ("batch", "batches are not served", text('[{"jsonrpc":"2.0","id":1,"method":"a"}]'), refused(-32600)),
    ("empty-batch", "nor are empty ones", text("[]"), refused(-32600)),
    ("string", "no object", text('"ping"'), refused(-32600)),
    ("null", "no object", text("null"), refused(-32600)),
    ("number", "no object", text("7"), refused(-32600)),
    ("empty-object", "an object without anything", text("{}"), refused(-32600)),
    ("no-version", "jsonrpc is missing", text('{"id":1,"method":"a"}'), refused(-32600, id=1)),
    (
        "version-1",
        "another version",
        text('{"jsonrpc":"1.0","id":"x","method":"a"}'),
        refused(-32600, id="x"),
    ),
    (
        "version-number",
        "a number is no version",
        text('{"jsonrpc":2.0,"id":1,"method":"a"}'),
        refused(-32600, id=1),
    ),
    ("no-method", "nothing is wanted", text('{"jsonrpc":"2.0","id":1}'), refused(-32600, id=1)),
    (
        "method-number",
        "a method is a string",
        text('{"jsonrpc":"2.0","id":1,"method":7}'),
        refused(-32600, id=1),
    ),
    (
        "method-null",
        "a method is a string",
        text('{"jsonrpc":"2.0","id":1,"method":null}'),
        refused(-32600, id=1),
    ),
    (
        "params-array",
        "params are an object",
        text('{"jsonrpc":"2.0","id":1,"method":"a","params":[]}'),
        refused(-32600, id=1),
    ),
    (
        "params-null",
        "params are an object",
        text('{"jsonrpc":"2.0","id":1,"method":"a","params":null}'),
        refused(-32600, id=1),
    ),
    (
        "params-string",
        "params are an object",
        text('{"jsonrpc":"2.0","id":"q","method":"a","params":"x"}'),
        refused(-32600, id="q"),
    ),
    (
        "notification-params",
        "a notification's too, which has no id",
        text('{"jsonrpc":"2.0","method":"a","params":7}'),
        refused(-32600),
    ),
    (
        "result-and-error",
        "a response is one of two",
        text('{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}'),
        refused(-32600, id=1),
    ),
    (
        "result-null",
        "a result is an object",
        text('{"jsonrpc":"2.0","id":1,"result":null}'),
        refused(-32600, id=1),
    ),
    (
        "error-without-message",
        "an error says something",
        text('{"jsonrpc":"2.0","id":1,"error":{"code":1}}'),
        refused(-32600, id=1),
    ),
    (
        "error-code-text",
        "a code is an integer",
        text('{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"x"}}'),
        refused(-32600, id=1),
    ),
]

IDS: Final = [
    (
        f"id-{word}",
        "an id is a string or an integer",
        text('{"jsonrpc":"2.0","id":' + id_ + ',"method":"a"}'),
        refused(-32600),
    )
    for word, id_ in (
        ("null", "null"),
        ("true", "true"),
        ("float", "1.5"),
        ("whole-float", "1.0"),
        ("object", "{}"),
        ("array", "[1]"),
    )
]


# -- lines -----------------------------------------------------------------------------------------------


def pieces(*chunks: str, **limits: int) -> dict[str, Any]:
    """Return pieces of a stream of UTF-8."""
    return {"chunks": list(chunks), **({"limits": limits} if limits else {})}


def found(*messages: str | None, cut: bool = False) -> dict[str, Any]:
    """Return the lines that are found, ``None`` for one too long, and whether the last one was cut off."""
    return {
        "lines": [{"too_long": True} if one is None else {"text": one} for one in messages],
        "cut_off": cut,
    }


LINES: Final = [
    ("one", "one message a line", pieces("{}\n"), found("{}")),
    ("two", "two messages", pieces('{"a":1}\n{"b":2}\n'), found('{"a":1}', '{"b":2}')),
    ("pieces", "pieces mean nothing", pieces("{", "}", "\n{", "}\n"), found("{}", "{}")),
    ("crlf", "a carriage return before the newline is none of the message's", pieces("{}\r\n"), found("{}")),
    ("blank", "blank lines are left out", pieces("\n\r\n  \n{}\n"), found("{}")),
    ("cut", "what has no newline is lost", pieces("{}\n{"), found("{}", cut=True)),
    ("nothing", "nothing", pieces(""), found()),
    ("non-ascii", "UTF-8", pieces('"世界"\n'), found('"世界"')),
    (
        "other-separators",
        "only a newline ends a line",
        pieces('"a\u2028b\x0b\x0c\x85"\n'),
        found('"a\u2028b\x0b\x0c\x85"'),
    ),
    ("exact", "a line at the bound", pieces("12345678\n", message_bytes=8), found("12345678")),
    ("exact-crlf", "the line end does not count", pieces("12345678\r\n", message_bytes=8), found("12345678")),
    (
        "long",
        "an over-long line is one error, and the next is read",
        pieces("123456789\n{}\n", message_bytes=8),
        found(None, "{}"),
    ),
    (
        "long-in-pieces",
        "however it comes",
        pieces("12345", "6789", "0123", "45\n", "{}\n", message_bytes=8),
        found(None, "{}"),
    ),
    (
        "long-unended",
        "it is known before its end",
        pieces("1234567890", message_bytes=8),
        found(None, cut=True),
    ),
    (
        "long-twice",
        "two of them, two errors",
        pieces("123456789\n123456789\n", message_bytes=8),
        found(None, None),
    ),
]

FRAMED: Final = [
    ("line", "a message and a newline", {"message": {"a": 1}}, {"text": '{"a":1}\n'}),
    (
        "newline-inside",
        "a newline in a string is escaped",
        {"message": {"a": "x\ny"}},
        {"text": '{"a":"x\\ny"}\n'},
    ),
    ("non-ascii", "UTF-8, not escaped", {"message": {"a": "世界"}}, {"text": '{"a":"世界"}\n'}),
]


NO_PARAMS: Final = ("params-array", "params-null", "params-string", "notification-params")
"""The specification says that they are an object, and not with which code others are refused."""


def messages() -> list[Vector]:
    """Return those of messages."""
    read = "read_message"
    return [
        *table(read, "WIRE.1", MESSAGES, KINDS),
        *table(read, "WIRE.1", MESSAGES, NO_JSON),
        *table(read, "WIRE.1", REQUESTS, NO_MESSAGE[:-4], ours=NO_PARAMS),
        *table(read, "WIRE.1", decided("WIRE.1"), NO_MESSAGE[-4:]),
        *table(read, "WIRE.3 WIRE.1", REQUESTS, IDS),
        *table(read, "WIRE.2", decided("WIRE.2"), STRICT),
    ]


def lines() -> list[Vector]:
    """Return those of lines."""
    return [
        *table("read_lines", "STD.1", spec(STDIO, "receiving-messages"), LINES),
        *table("write_line", "STD.1", spec(STDIO, "sending-messages"), FRAMED),
    ]
