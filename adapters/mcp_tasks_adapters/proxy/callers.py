"""Who calls a proxy: the function that says so, and a ready one for keys in a file."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from mcp_tasks_adapters.driver import RequestFacts
from mcp_tasks_adapters.toolkit.errors import Unauthorized
from mcp_tasks_proto.proxy import Access
from mcp_tasks_proto.proxy.settings import DEFAULT_PROFILE

__all__ = [
    "SHORTEST",
    "AuthenticateFunction",
    "Caller",
    "Credentials",
    "CredentialsError",
    "checked_caller",
    "digest_of",
    "read_digest",
]


@frozen
class Caller:
    """Who calls, and what that caller may do at this moment (PRX.7)."""

    principal: str | None
    """Whose tasks are whose (SEC.1); ``None``: a caller without a name."""
    access: Access


AuthenticateFunction = Callable[[RequestFacts], "Caller | Awaitable[Caller]"]
"""Names the caller of one request, or raises :class:`~mcp_tasks_adapters.toolkit.Unauthorized`."""


def checked_caller(named: Any) -> Caller:
    """Return what ``authenticate=`` named. Raises ``TypeError`` for anything but a :class:`Caller`."""
    if not isinstance(named, Caller):
        raise TypeError("authenticate= returns a Caller")
    return named


class CredentialsError(Exception):
    """A file of credentials cannot be used; the message says why, and where."""


class Credentials:
    """Bearer tokens of people and API keys of programs, from a TOML file.

    ::

        [[caller]]
        principal = "alice"
        token = "..."                 # or token_sha256, its digest in hexadecimal
        project = "film"              # and, if need be: profile, label

        [[caller]]
        principal = "nightly-build"
        api_key_sha256 = "..."        # or api_key

    Both are taken from ``Authorization: Bearer``, and an API key from ``X-API-Key`` as well. Only digests are
    kept in memory. Call an instance as an :data:`AuthenticateFunction`.
    """

    def __init__(self, callers: Mapping[str, Caller]) -> None:
        """Take callers by the SHA-256 digest of their credential, in lower-case hexadecimal."""
        self._callers = dict(callers)

    @property
    def callers(self) -> Mapping[str, Caller]:
        """Callers by the digest of their credential."""
        return dict(self._callers)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Credentials:
        """Read a file. Raises :class:`CredentialsError`."""
        try:
            content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise CredentialsError(f"The callers in {path} cannot be read: {error.strerror}.") from error
        except (ValueError, RecursionError) as error:  # be it for long numbers, or deep tables
            raise CredentialsError(f"{path} is not TOML: {error}.") from error
        rows = content.get("caller")
        if set(content) != {"caller"} or not isinstance(rows, list) or not rows:
            raise CredentialsError(f"{path} has to consist of [[caller]] tables, one at least.")
        callers: dict[str, Caller] = {}
        for number, row in enumerate(rows, start=1):
            try:
                digest, caller = _read_row(row)
            except ValueError as error:
                raise CredentialsError(f"{path}, caller {number}: {error}.") from None
            if digest in callers:
                raise CredentialsError(f"{path}, caller {number}: another one has the same credential.")
            callers[digest] = caller
        return cls(callers)

    def __call__(self, facts: RequestFacts) -> Caller:
        """Return whose credential came with a request. Raises :class:`Unauthorized`."""
        scheme, _, bearer = facts.headers.get("authorization", "").partition(" ")
        given = bearer.strip() if scheme.lower() == "bearer" else ""
        by_key = facts.headers.get("x-api-key", "")
        caller = self._callers.get(digest_of(given or by_key)) if given or by_key else None
        if caller is None or (not given and not caller.access.api_key):
            raise Unauthorized(www_authenticate="Bearer")
        return caller


def digest_of(credential: str) -> str:
    """Return what is kept of a credential: its SHA-256, in lower-case hexadecimal."""
    return sha256(credential.encode("utf-8", "surrogateescape")).hexdigest()


def read_digest(text: str) -> str | None:
    """Return a digest that was written down as :func:`digest_of` has it; ``None``: it is none."""
    return text.lower() if _HEXADECIMAL.fullmatch(text.lower()) else None


_CREDENTIALS: Final = ("token", "token_sha256", "api_key", "api_key_sha256")
_MEMBERS: Final = frozenset({*_CREDENTIALS, "principal", "project", "profile", "label"})
_HEXADECIMAL: Final = re.compile(r"[0-9a-f]{64}")
SHORTEST: Final = 16
"""Characters that a credential must have: shorter ones can be guessed."""


def _read_row(row: Any) -> tuple[str, Caller]:
    """Return a caller with the digest of its credential. Raises ``ValueError``, which quotes no secret."""
    if not isinstance(row, dict) or not all(isinstance(value, str) for value in row.values()):
        raise ValueError("its members are strings")
    if unknown := sorted(set(row) - _MEMBERS):
        raise ValueError(f"there is no member {unknown[0]!r}; there is {', '.join(sorted(_MEMBERS))}")
    if not row.get("principal"):
        raise ValueError("it has no principal")
    given = [name for name in _CREDENTIALS if name in row]
    if len(given) != 1:
        raise ValueError(f"it has one of {', '.join(_CREDENTIALS)}")
    (kind,) = given
    access = Access(
        project=row.get("project"),
        profile=row.get("profile", DEFAULT_PROFILE),
        api_key=kind.startswith("api_key"),
        caller=str(row.get("label", row["principal"])),
    )
    return _digest_in(row[kind], kind), Caller(row["principal"], access)


def _digest_in(value: str, kind: str) -> str:
    if not kind.endswith("_sha256"):
        if len(value) < SHORTEST:
            raise ValueError(f"its {kind} has fewer than {SHORTEST} characters")
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"its {kind} is not printable ASCII, which alone a header has")
        return digest_of(value)
    if (digest := read_digest(value)) is None:
        raise ValueError(f"its {kind} is not 64 hexadecimal digits")
    return digest
