"""Which era a server is of, by how it answers a modern request (versioning, "Backward Compatibility")."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

from mcp_tasks_proto.errors import ErrorCode, ErrorObject
from mcp_tasks_proto.legacy.requester.reading import at
from mcp_tasks_proto.requester.inputs import RequestFailed, ResponseReceived
from mcp_tasks_proto.vocabulary import LEGACY_VERSION
from mcp_tasks_proto.wire.jsonrpc import Response, parse_message

__all__ = ["Sign", "names_modern_version", "read_sign"]


class Sign(Enum):
    """What an answer says of its server."""

    MODERN = "modern"
    LEGACY = "legacy"
    """Or of a modern one that will not be talked to; ``initialize`` tells."""
    UNSURE = "unsure"
    """Both may answer so."""
    NONE = "none"
    """Nothing: it was not reached, or is not ready."""

    __hash__ = object.__hash__


_MODERN_CODES: Final = frozenset(
    {
        ErrorCode.HEADER_MISMATCH,
        ErrorCode.MISSING_CLIENT_CAPABILITY,
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
    }
)
"""Only servers of the modern era know these."""

_NO_VERDICT: Final = frozenset({401, 403, 408, 425, 429})
"""HTTP statuses below 500 that say nothing of the era: who asks is to come again, otherwise."""


def read_sign(fact: ResponseReceived | RequestFailed, versions: Sequence[str], *, http: bool) -> Sign:
    """Read an answer to a modern request, the first that a server was sent.

    ``versions`` are those spoken here. On stdio a server that dies of it has shown that it is legacy.
    """
    if isinstance(fact, RequestFailed):
        return Sign.LEGACY if fact.sent and not http else Sign.NONE
    status = 200 if fact.http is None else fact.http.status
    if status in _NO_VERDICT or status >= 500:
        return Sign.NONE
    response = parse_message(fact.message)
    if not isinstance(response, Response):
        return Sign.LEGACY if status >= 400 else Sign.NONE
    if response.error is not None:
        answered = response.id == fact.request
        return _sign_of_error(response.error, versions, status, answered=answered, http=http)
    named = at(response.result, "supportedVersions")
    if isinstance(named, list):
        return _sign_of_versions(named, versions)
    return Sign.MODERN if isinstance(at(response.result, "resultType"), str) else Sign.UNSURE


def _sign_of_error(
    error: ErrorObject, versions: Sequence[str], status: int, *, answered: bool, http: bool
) -> Sign:
    """An error that answers the request, and not only its transport, may be any server's."""
    if error.code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION:
        return _sign_of_versions(at(error.data, "supported"), versions)
    if error.code in _MODERN_CODES or (status == 404 and error.code == ErrorCode.METHOD_NOT_FOUND):
        return Sign.MODERN
    return Sign.UNSURE if http and answered else Sign.LEGACY


def _sign_of_versions(named: object, versions: Sequence[str]) -> Sign:
    """A server that speaks no modern version of ours may still speak the legacy one."""
    if not isinstance(named, list) or any(version in named for version in versions):
        return Sign.MODERN
    return Sign.LEGACY if LEGACY_VERSION in named else Sign.MODERN


def names_modern_version(error: ErrorObject, versions: Sequence[str]) -> bool:
    """Whether the answer to ``initialize`` is that of a server of the modern era (NEG.9)."""
    named = at(error.data, "supported")
    return isinstance(named, list) and any(version in named for version in versions)
