"""The secrets that a configuration names: in files of their own, in variables, or as digests."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from mcp_tasks_adapters.proxy.callers import SHORTEST, digest_of, read_digest
from mcp_tasks_adapters.proxy.toml_tables import Table
from mcp_tasks_adapters.stores.sealing import HANDLE_KEYS_VARIABLE, KEYS_VARIABLE

__all__ = ["NAMED", "Secrets"]

NAMED: Final = "{ file = … } or { variable = … }"
"""How a configuration names a secret."""

_SOURCES: Final = ("sha256", "sha256_file", "variable")


class Secrets:
    """Finds secrets, from the folder of a configuration and in the environment. Nothing quotes one."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._variables = {KEYS_VARIABLE, HANDLE_KEYS_VARIABLE}

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment without what was read of it so far: the proxy's own secrets."""
        return {name: value for name, value in self._environment.items() if name not in self._variables}

    def path(self, name: str) -> Path:
        """Return the file of a name in the configuration: from its folder, whatever this process's own is."""
        path = Path(name)
        with suppress(RuntimeError):  # there is no such person
            path = path.expanduser()
        return (self._folder / path).absolute()

    def read(self, table: Table, key: str) -> str | None:
        """Read what ``{ file = "…" }`` or ``{ variable = "…" }`` names; ``None``: that is a mistake."""
        if isinstance(table.content[key], str):
            table.skip(key)
            table.note(f"a credential is not written here: say {NAMED}", key)
            return None
        source = table.table(key)
        if not isinstance(table.content[key], dict):
            return None
        file, variable = source.text("file"), source.text("variable")
        source.close()
        if (file is None) is (variable is None):
            source.note(f"names a secret: {NAMED}")
            return None
        where = "file" if variable is None else "variable"
        value = (
            self._file(source, file or "", where) if variable is None else self._variable(source, variable)
        )
        if value is not None and not (value.isascii() and value.isprintable()):
            source.note("what is there is not one line of printable ASCII", where)
            return None
        return value

    def read_digest(self, table: Table) -> str | None:
        """Read the digest of a caller's credential; ``None``: that is a mistake."""
        given = {name: table.text(name) for name in _SOURCES}
        sources = [name for name, value in given.items() if value is not None]
        for plain in ("token", "api_key", "key"):
            if plain in table:
                table.text(plain)
                table.note(
                    "a credential is not written here: say sha256 = with its digest, which "
                    "printf %s … | sha256sum makes",
                    plain,
                )
                return None
        if len(sources) != 1:
            table.note("has one credential: sha256, sha256_file or variable")
            return None
        (source,) = sources
        value = given[source] or ""
        if source == "variable":
            return self._digest_of_variable(table, value)
        digest = value if source == "sha256" else self._file(table, value, source)
        read = None if digest is None else read_digest(digest)
        if digest is not None and read is None:
            table.note("is not a SHA-256 digest, which has 64 hexadecimal digits", source)
        return read

    def _digest_of_variable(self, table: Table, name: str) -> str | None:
        secret = self._variable(table, name)
        if secret is not None and len(secret) < SHORTEST:
            table.note(f"the variable {name} holds fewer than {SHORTEST} characters", "variable")
            return None
        if secret is not None and not (secret.isascii() and secret.isprintable()):
            table.note(f"the variable {name} holds no line of printable ASCII: no header has it", "variable")
            return None
        return None if secret is None else digest_of(secret)

    def _variable(self, table: Table, name: str) -> str | None:
        self._variables.add(name)
        value = self._environment.get(name, "").strip()
        if not value:
            table.note(f"the variable {name} is not set", "variable")
        return value or None

    def _file(self, table: Table, name: str, key: str) -> str | None:
        try:
            value = self.path(name).read_text(encoding="utf-8").strip()
        except OSError as error:
            table.note(f"{name} cannot be read: {error.strerror}", key)
            return None
        except UnicodeDecodeError:
            table.note(f"{name} is not text", key)
            return None
        if not value:
            table.note(f"{name} is empty", key)
        return value or None
