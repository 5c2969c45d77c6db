"""What a tool's author raises, and what is raised to a tool's author."""

from __future__ import annotations

from typing import Any

from mcp_tasks_adapters.toolkit.values import check_text, wire_value
from mcp_tasks_proto.errors import ErrorObject

__all__ = ["ProtocolError", "ReportRejected", "ToolError", "Unauthorized"]


class ToolError(Exception):
    """The tool could not do it, and the model should know why: a result with ``isError``.

    The message is the result's text, word for word. A task that ends so is ``completed`` (LIFE.2).
    """


class ProtocolError(Exception):
    """Answer the request with this JSON-RPC error. A task that ends so is ``failed`` (LIFE.2).

    ``data`` is any JSON value; ``None`` leaves it out. Raises ``TypeError`` for a code that is not an
    integer or a message that is not a string, ``ValueError`` for what is not JSON.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        if not isinstance(code, int) or isinstance(code, bool):
            raise TypeError("a protocol error's code is an integer")
        if not isinstance(message, str):
            raise TypeError("a protocol error's message is a string")
        check_text("a protocol error's message", message)
        super().__init__(message)
        self.error = ErrorObject(code, message, wire_value(data))


class Unauthorized(Exception):  # noqa: N818 - HTTP's own word
    """Raised by a ``principal=`` or ``enabled=`` function: the caller is nobody we serve.

    HTTP answers 401, with ``www_authenticate`` as its ``WWW-Authenticate`` header when given (``ValueError``
    where it cannot be one). The message is for the server's own code; the peer does not see it.
    """

    def __init__(self, message: str = "", www_authenticate: str | None = None) -> None:
        super().__init__(message)
        if www_authenticate is not None and not _fits_header(www_authenticate):
            raise ValueError("www_authenticate is printable ASCII")
        self.www_authenticate = www_authenticate


def _fits_header(value: str) -> bool:
    return value.isascii() and value.isprintable()


class ReportRejected(Exception):  # noqa: N818 - it says what happened to the report
    """The engine did not take what a worker told it; the message says why.

    Examples: the worker asked for a kind of input that the caller never declared (INP.2), the task has
    ended, or the store could not write.
    """
