"""Who answers a server's questions: a script, the person at the terminal, or nobody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_tasks_adapters.cli.client.loops import Loop
from mcp_tasks_adapters.cli.client.prepared import PreparedAnswers
from mcp_tasks_adapters.cli.client.questions import conversation
from mcp_tasks_adapters.cli.client.screen import Screen
from mcp_tasks_adapters.cli.client.terminal import discard_typed, read_line
from mcp_tasks_adapters.client import InputRequest

__all__ = ["Asker"]

CANCEL: Final[Mapping[str, Any]] = {"action": "cancel"}


class Asker:
    """Answers questions; its :meth:`answer` is what a client takes.

    A prepared answer goes first, then the person at the terminal, one question at a time. With neither, the
    server is told that nobody answered: nothing is ever accepted by itself.
    """

    def __init__(
        self,
        loop: Loop,
        screen: Screen,
        prepared: PreparedAnswers,
        *,
        somebody_is_there: bool,
        stays_open: Callable[[], bool],
    ) -> None:
        self._loop = loop
        self._screen = screen
        self._prepared = prepared
        self._somebody_is_there = somebody_is_there
        self._stays_open = stays_open
        self._turn = loop.lock()

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        """Return the answer to a question.

        Raises :class:`~mcp_tasks_adapters.cli.client.arguments.InputError` for one that was prepared, and
        does not fit.
        """
        prepared = self._prepared.take(request.key, request.raw)
        if prepared is not None:
            self._screen.answered(request, prepared, by="script")
            return prepared
        if not self._somebody_is_there:
            self._screen.answered(request, CANCEL, by="nobody")
            return CANCEL
        async with self._turn:
            response = await self._converse(request)
        self._screen.answered(request, response, by="person")
        return response

    async def _converse(self, request: InputRequest) -> Mapping[str, Any]:
        talk = conversation(request.raw)
        with self._screen.asking(request, self._stays_open) as say:
            discard_typed()  # it was not meant for this question
            say(*talk.opening())
            try:
                while talk.response is None:
                    lines, label = talk.prompt()
                    say(*lines)
                    say(label, end="")
                    line = await read_line(self._loop)
                    if line is None:
                        say("")  # Ctrl-D moves no cursor
                    say(*talk.enter(line))
            except BaseException:
                discard_typed()  # half an answer, which would end up in whatever reads next
                raise
        return talk.response
