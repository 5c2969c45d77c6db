"""Pure functions about HTTP: headers, the endpoint, event streams."""

from __future__ import annotations

from typing import Any

from mcp_tasks_proto.errors import ErrorObject, RemoteProtocolError
from mcp_tasks_proto.inputs import HttpHead
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.vocabulary import PROTOCOL_VERSION
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
    read_fields,
    request_headers,
)
from mcp_tasks_proto.wire.sse import EventDecoder, encode_event

__all__ = ["FUNCTIONS", "head_of"]

Given = dict[str, Any]


def _raw(headers: list[list[str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def head_of(headers: list[list[str]], *, accepts_stream: bool = True) -> HttpHead:
    """Return the head that a message came with."""
    fields, repeated = read_fields(_raw(headers))
    return HttpHead(headers=fields, repeated=repeated, accepts_stream=accepts_stream)


def _encode(given: Given) -> Given:
    return {"header": encode_header_value(given["value"])}


def _decode(given: Given) -> Given:
    value = decode_header_value(given["header"])
    return {"malformed": True} if value is None else {"value": value}


def _verdict(error: ErrorObject | None) -> Given:
    if error is None:
        return {"accepted": True}
    return {"code": int(error.code), "http_status": error.http_status}


def _standard(given: Given) -> Given:
    head, message = head_of(given["headers"]), given["message"]
    version = message["params"]["_meta"][PROTOCOL_VERSION]
    error = check_version_header(head, version)
    return _verdict(error or check_standard_headers(head, message["method"], message["params"]))


def _parameters(given: Given) -> Given:
    head = head_of(given["headers"])
    declared = header_parameters(given["input_schema"])
    return _verdict(check_parameter_headers(head, declared, given["arguments"]))


def _annotations(given: Given) -> Given:
    try:
        found = header_parameters(given["input_schema"])
    except ValueError:
        return {"valid": False}
    return {"valid": True, "parameters": [{"header": one.header, "path": list(one.path)} for one in found]}


def _to_send(given: Given) -> Given:
    message = given["message"]
    declared: tuple[HeaderParameter, ...] = header_parameters(given.get("input_schema", {}))
    sent = request_headers(message["method"], message["params"], given["version"], declared)
    return {"headers": {name.lower(): value for name, value in sent}}


def _endpoint(given: Given) -> Given:
    endpoint = dict(given.get("endpoint", {}))
    limits = Limits(**{name: endpoint.pop(name) for name in ("message_bytes",) if name in endpoint})
    chosen: Given = {
        name: value if isinstance(value, str) or value is None else frozenset(value)
        for name, value in endpoint.items()
    }
    request = given["request"]
    policy = EndpointPolicy(**chosen)
    found = check_head(request["method"], request["target"], _raw(request["headers"]), policy, limits)
    return {"status": found.status} if isinstance(found, Refusal) else {"passes": True}


def _status(given: Given) -> Given:
    return {"http_status": ErrorObject(given["code"], "").http_status}


def _read_events(given: Given) -> Given:
    decoder, found = EventDecoder(Limits(message_bytes=given.get("message_bytes", 1000))), []
    try:
        for chunk in given["chunks"]:
            found += decoder.feed(chunk.encode())
        cut_off = decoder.close()
    except RemoteProtocolError as error:
        return {"code": int(error.error.code)}
    events = [
        {"data": one.data.decode(), "event": one.event, "last_event_id": one.last_event_id} for one in found
    ]
    return {"events": events, "cut_off": cut_off}


def _response_headers(given: Given) -> Given:
    return {"headers": dict(STREAM_HEADERS if given["stream"] else JSON_HEADERS)}


def _write_event(given: Given) -> Given:
    return {"text": encode_event(given["data"].encode(), given.get("event_id")).decode()}


FUNCTIONS = {
    "encode_header_value": _encode,
    "decode_header_value": _decode,
    "check_standard_headers": _standard,
    "check_parameter_headers": _parameters,
    "header_parameters": _annotations,
    "request_headers": _to_send,
    "check_endpoint": _endpoint,
    "error_status": _status,
    "read_events": _read_events,
    "response_headers": _response_headers,
    "write_event": _write_event,
}
