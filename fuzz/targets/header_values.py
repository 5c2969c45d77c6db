"""Values in headers (HTTP.2, HTTP.3). Line 1 is a value, line 2 a message, line 3 a tool's inputSchema.

* Any text can be sent, as visible ASCII that survives the stripping of white space, and is read as it was.
* A raw value is read as what an independent reading of it says, or is malformed.
* What a client sends with a message passes the server's checks; another value in place of the right one
  passes only if it means the same.
* A bad annotation is a ``ValueError``, whatever the schema looks like.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error
from typing import Any, Final

from fuzz.comparing import read_json
from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.inputs import HttpHead
from mcp_tasks_proto.wire.http import (
    HeaderParameter,
    check_parameter_headers,
    check_standard_headers,
    check_version_header,
    decode_header_value,
    encode_header_value,
    header_parameters,
    name_of,
    read_fields,
    request_headers,
)

VERSION: Final = "2026-07-28"


def check(data: bytes) -> None:
    """Take the three lines apart, and check each with those before it."""
    raw, message, input_schema, *_ = (*data.split(b"\n", 2), b"", b"")
    value = str(raw, "latin-1").strip(" \t")
    _check_reading(value)
    _check_sending(raw.decode("utf-8", errors="replace"))
    parameters = _parameters(read_json(input_schema))
    match read_json(message):
        case {"method": str(method), "params": dict(params)}:
            _check_message(method, params, parameters, value)


def _check_reading(raw: str) -> None:
    read = decode_header_value(raw)
    assert read == _plainly_read(raw), "HTTP.2: read as something else"
    if read is not None:
        assert decode_header_value(encode_header_value(read)) == read


def _check_sending(text: str) -> None:
    sent = encode_header_value(text)
    assert re.fullmatch(r"[\t\x20-\x7e]*", sent), "HTTP.2: not a value that a header can have"
    assert sent == sent.strip(" \t"), "HTTP.2: white space around a value is lost"
    assert decode_header_value(sent) == text, "HTTP.2: not as sent"


def _plainly_read(raw: str) -> str | None:
    if not re.fullmatch(r"[\t\x20-\x7e]*", raw):
        return None
    if len(raw) < len("=?base64??=") or not (raw.startswith("=?base64?") and raw.endswith("?=")):
        return raw
    encoded = raw[len("=?base64?") : -len("?=")]
    try:
        decoded = b64decode(encoded, validate=True)
        return decoded.decode("utf-8") if b64encode(decoded).decode("ascii") == encoded else None
    except (Error, ValueError):
        return None


def _parameters(input_schema: Any) -> tuple[HeaderParameter, ...]:
    try:
        found = header_parameters(input_schema)
    except ValueError:
        return ()
    names = [parameter.key for parameter in found]
    assert len(set(names)) == len(names), "HTTP.3: two parameters of one header"
    for parameter in found:
        at: Any = input_schema
        for name in parameter.path:
            at = at["properties"][name]
        assert parameter.header == f"Mcp-Param-{at['x-mcp-header']}", "HTTP.3: not what stands there"
    return found


def _check_message(
    method: str, params: dict[str, Any], parameters: tuple[HeaderParameter, ...], other: str
) -> None:
    try:
        headers = request_headers(method, params, VERSION, parameters)
    except LocalProtocolError:
        return
    assert _accepts(headers, method, params, parameters), "HTTP.2: what our client sends is refused"
    for name, sent in headers:
        replaced = [(one, other if one == name else value) for one, value in headers]
        if name.startswith("Mcp-") or name == "MCP-Protocol-Version":
            means_the_same = other == sent or _means_the_same(name, other, method, params, parameters)
            accepted = _accepts(replaced, method, params, parameters)
            assert accepted == means_the_same, f"HTTP.2: another value in {name}"
            without = [(one, value) for one, value in headers if one != name]
            assert not _accepts(without, method, params, parameters), f"HTTP.2: {name} is missing"
            twice = [*headers, (name.upper(), sent)]
            assert not _accepts(twice, method, params, parameters), f"HTTP.2: {name} is there twice"


def _accepts(
    headers: list[tuple[str, str]],
    method: str,
    params: dict[str, Any],
    parameters: tuple[HeaderParameter, ...],
) -> bool:
    fields, repeated = read_fields((name.encode(), value.encode("latin-1")) for name, value in headers)
    head = HttpHead(headers=fields, repeated=repeated)
    problem = (
        check_version_header(head, VERSION)
        or check_standard_headers(head, method, params)
        or check_parameter_headers(head, parameters, params.get("arguments"))
    )
    return problem is None


def _means_the_same(
    header: str, raw: str, method: str, params: dict[str, Any], parameters: tuple[HeaderParameter, ...]
) -> bool:
    """Whether a raw value stands for what the body says. Method and version are never encoded."""
    read = _plainly_read(raw)
    if header == "Mcp-Name":
        return read is not None and read == name_of(method, params)
    for parameter in parameters:
        if parameter.header == header:
            argument: Any = params.get("arguments")
            for name in parameter.path:
                argument = argument[name]
            return read is not None and _same_argument(parameter, argument, read)
    return False


def _same_argument(parameter: HeaderParameter, argument: Any, read: str) -> bool:
    if isinstance(argument, bool):
        return read == str(argument).lower()
    if isinstance(argument, str) and not (parameter.type == "integer" and re.fullmatch("-?[0-9]+", argument)):
        return read == argument
    if read == str(argument):
        return True
    whole = re.fullmatch(r"(-?[0-9]{1,32})(\.0{1,32})?", read)
    if isinstance(argument, float) and read == str(int(argument)):
        return True
    return (
        parameter.type == "integer"
        and whole is not None
        and str(int(whole[1])) == str(argument if isinstance(argument, str) else int(argument))
    )
