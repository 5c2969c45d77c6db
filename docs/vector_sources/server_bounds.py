"""SEC, LIM: the owner and nobody else, keys that rotate, bounds."""

from __future__ import annotations

from typing import Final

from docs.vector_sources.making import Vector, decided, tasks_spec
from docs.vector_sources.server_input import again, asked_of
from docs.vector_sources.speaking import (
    ACCEPT,
    DONE,
    acknowledges,
    asks,
    call,
    cancel,
    completed,
    error,
    form,
    get,
    handler,
    host,
    leaves,
    listen,
    made,
    refused,
    seen,
    server,
    starts,
    step,
    tells,
    unknown,
    update,
)

SECURITY: Final = tasks_spec("security-considerations")
NOBODYS: Final = "nobodys-0123456789abcdefghijk"


def security() -> list[Vector]:
    """Return those of SEC and LIM."""
    return [
        server(
            "owner",
            "the owner, and nobody else, on every operation",
            made(principal="ada"),
            step(asks(confirm=form())),
            step(get("2", principal="bob"), unknown("2")),
            step(update("3", {"confirm": ACCEPT}, principal="bob"), unknown("3")),
            step(cancel("4", principal="bob"), unknown("4")),
            step(get("5"), unknown("5")),
            step(get("6", principal=""), unknown("6")),
            step(get("7", principal="Ada"), unknown("7")),
            step(get("8", principal="ada"), seen("8", "input_required", inputRequests={"confirm": form()})),
            rules="SEC.1 GET.2",
            source=SECURITY,
        ),
        server(
            "nobody",
            "no principal matches no principal only",
            made(),
            step(get("2", principal="ada"), unknown("2")),
            step(cancel("3", principal=""), unknown("3")),
            step(get("4"), seen("4")),
            rules="SEC.1",
            source=decided("SEC.1"),
        ),
        server(
            "keys-rotate",
            "a state that an old key sealed opens while that key is there, and not afterwards",
            step(call("1"), starts("1")),
            step(handler("1", "ask", requests={"confirm": form()}), asked_of("1", confirm=form())),
            step(host("rotate_keys")),
            step(host("restart")),
            step(again("2", {"confirm": ACCEPT}), starts("2", answers={"confirm": ACCEPT})),
            step(host("drop_keys")),
            step(host("restart")),
            step(again("3", {"confirm": ACCEPT}), error("3", -32602, 200)),
            rules="SEC.2 INP.4",
            source=decided("SEC.2"),
        ),
        server(
            "no-ids-in-errors",
            "an error about a task does not repeat its id",
            made(principal="ada"),
            step(
                get("2", "secret-name-0123456789abcdef", principal="ada"),
                error("2", -32602, 200, text={"$without": "secret-name"}),
            ),
            rules="SEC.2",
            source=decided("SEC.2"),
        ),
        *(
            server(
                f"cap-{limit}",
                f"at the bound {limit} the caller concerned is told, and nobody else is disturbed",
                *steps,
                rules="LIM.3",
                source=decided("LIM.3"),
                limits={limit: most},
            )
            for limit, most, steps in (
                (
                    "exchanges",
                    1,
                    (
                        step(call("1"), starts("1")),
                        step(call("2"), error("2", -32603, 200, data={"reason": "exchanges"})),
                        step(handler("1", "return", result=DONE), completed("1", **DONE)),
                        step(call("3"), starts("3")),
                    ),
                ),
                (
                    "streams",
                    1,
                    (
                        step(listen("1", tools=True), acknowledges("1", tools=True)),
                        step(listen("2", tools=True), error("2", -32603, 200, data={"reason": "streams"})),
                        step(leaves("1")),
                        step(listen("3", tools=True), acknowledges("3", tools=True)),
                    ),
                ),
                (
                    "streams_per_principal",
                    1,
                    (
                        step(listen("1", tools=True, principal="ada"), acknowledges("1", tools=True)),
                        step(
                            listen("2", tools=True, principal="ada"),
                            error("2", -32603, 200, data={"reason": "streams_per_principal"}),
                        ),
                        step(listen("3", tools=True, principal="bob"), acknowledges("3", tools=True)),
                    ),
                ),
                (
                    "stream_tasks",
                    1,
                    (
                        *made(),
                        step(
                            listen("2", "$task", NOBODYS),
                            error("2", -32603, 200, data={"reason": "stream_tasks"}),
                        ),
                        step(listen("3", "$task"), acknowledges("3", "$task"), tells("3")),
                    ),
                ),
                (
                    "workers",
                    1,
                    (
                        *made(),
                        step(call("2"), starts("2")),
                        step(
                            handler("2", "become_task"), error("2", -32603, 200, data={"reason": "workers"})
                        ),
                        step(get("3"), seen("3")),
                    ),
                ),
                (
                    "input_keys",
                    2,
                    (
                        *made(),
                        step(asks(a=form(), b=form())),
                        step(asks("second", c=form()), refused()),
                        step(get("2"), seen("2", "input_required", inputRequests={"a": form(), "b": form()})),
                    ),
                ),
            )
        ),
    ]
