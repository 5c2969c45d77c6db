"""A way to a PostgreSQL server on which things go wrong when they are told to."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Final

__all__ = ["Proxy", "proxy"]

SOCKET: Final = ".s.PGSQL.5432"
PIECE: Final = 65_536


class Proxy:
    """Listens on a socket in :attr:`folder`, and passes on to that of a server."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self.folder = Path(tempfile.mkdtemp(prefix="mcp-px-"))
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / SOCKET))
        self._listener.listen(100)
        self._lock = Lock()
        self._open: list[socket.socket] = []
        self.deaf = Event()
        """What clients say is lost."""
        self.mute = Event()
        """What the server says is lost."""
        self.refusing = Event()
        """New connections are cut at once."""
        Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End every connection there is."""
        with self._lock:
            cut, self._open = self._open, []
        for one in cut:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def remove(self) -> None:
        """End it for good."""
        self.refusing.set()
        self.cut()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        shutil.rmtree(self.folder)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.refusing.is_set():
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(str(self._server / SOCKET))
                except OSError:
                    client.close()
                    continue
                with self._lock:
                    self._open += [client, server]
                for source, target, lost in ((client, server, self.deaf), (server, client, self.mute)):
                    Thread(target=self._pass_on, args=(source, target, lost), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, lost: Event) -> None:
        with suppress(OSError):
            while piece := source.recv(PIECE):
                if not lost.is_set():
                    target.sendall(piece)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        source.close()


@contextmanager
def proxy(server: Path) -> Iterator[Proxy]:
    """Run one for the length of the block."""
    made = Proxy(server)
    try:
        yield made
    finally:
        made.remove()
