"""Codecs: bytes, JSON values and HTTP heads on one side, checked values on the other.

Each module stands alone and does no I/O. Someone with a JSON parser and an HTTP server of their own uses
as much of it as they like:

* :mod:`~mcp_tasks_proto.wire.jsonrpc` - strict JSON, and what kind of message a JSON value is;
* :mod:`~mcp_tasks_proto.wire.schema` - params, views and stored records as typed values;
* :mod:`~mcp_tasks_proto.wire.http` - what Streamable HTTP asks of a request's head;
* :mod:`~mcp_tasks_proto.wire.sse` and :mod:`~mcp_tasks_proto.wire.stdio` - framing of messages in a stream.
"""
