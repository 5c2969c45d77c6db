"""The rules that a peer can count on, one line each; docs/generate.py sets their tests beside them."""

from __future__ import annotations

from typing import Final

SECTIONS: Final[dict[str, dict[str, str]]] = {
    "Messages": {
        "WIRE.1": "a message is one JSON-RPC 2.0 object in UTF-8; anything else is -32700 or -32600",
        "WIRE.2": "JSON is read strictly, within bounds of depth and size",
        "WIRE.3": "ids keep their type, and differ while in flight on a channel; notifications get no reply",
        "WIRE.4": "every result says what kind it is, and who gave it",
        "WIRE.5": "what the engine does not own passes through untouched",
    },
    "Negotiation": {
        "NEG.1": "a request carries its protocol version and client capabilities",
        "NEG.2": "a version that is not served is -32022, with those that are",
        "NEG.3": "the checks have one order, and the first that fails decides",
        "NEG.4": "only this request declares the extension; any object value does",
        "NEG.5": "a caller who does not declare tasks gets none; a tool that needs them is -32021",
        "NEG.6": "nor may such a caller use tasks/*, or listen to tasks",
        "NEG.7": "where the extension is off for a request, it does not exist",
        "NEG.8": "tasks/result, tasks/list and the param `task` are unknown",
        "NEG.9": "server/discover always answers; initialize is refused with the versions served",
        "NEG.10": "an unknown method is -32601; input that was not declared is -32021",
    },
    "The task": {
        "LIFE.1": "five statuses; a terminal one never changes",
        "LIFE.2": "a result is completed, be it isError; failed is for protocol errors, and says why",
        "LIFE.3": "a create result is flat and carries no payload",
        "LIFE.4": "it is sent once the record is durable",
        "LIFE.5": "ttlMs is always there; times are RFC 3339; lastUpdatedAt moves exactly when the view does",
        "LIFE.6": "a task id cannot be guessed, and fits a header",
        "LIFE.7": "results of tasks/* and the result inside say complete",
        "LIFE.8": "a call that fails, or is done at once, makes no task",
    },
    "Get, update, cancel": {
        "GET.1": "tasks/get only reads: the view that a notification would carry at that moment",
        "GET.2": "unknown, expired, foreign and malformed ids get one answer",
        "UPD.3": "an update delivers answers to outstanding keys, and ignores all others",
        "UPD.4": "a malformed answer is -32602 naming its key, and nothing of that update is applied",
        "UPD.5": "concurrent updates lose nothing, and deliver each answer once",
        "CAN.6": "cancellation is cooperative, told once, and has a deadline",
        "CAN.7": "a client that goes away cancels its request, never a task it was given",
    },
    "Input requests": {
        "INP.1": "all outstanding requests are listed; a key is never used twice",
        "INP.2": "only kinds that the creating call declared are asked",
        "INP.3": "several at once, answered one by one; the task goes on after the last",
        "INP.4": "before a task, input is asked by MRTR with a sealed state",
    },
    "Lifetime": {
        "TTL.1": "readable until createdAt + ttlMs, unknown from then on; live work is stopped",
        "TTL.2": "nothing is dropped to make room: at a bound, creation fails and names it",
        "TTL.3": "a host may change a lifetime at any time",
    },
    "Listening": {
        "SUB.1": "the acknowledgement comes first, and names only what the caller owns",
        "SUB.2": "then a snapshot and each change; a slow reader gets the latest, and always the last",
        "SUB.3": "notifications carry the flat view; never progress or logs",
        "SUB.4": "a stream ends by its client, or gracefully by the server",
    },
    "HTTP and stdio": {
        "HTTP.1": "one endpoint that takes POST, JSON, and callers from where it should",
        "HTTP.2": "the standard headers are there and equal the body",
        "HTTP.3": "annotated arguments are mirrored; sessions and resumption are ignored",
        "HTTP.4": "an answer is JSON, or a stream where it streams; closing it cancels that request only",
        "HTTP.5": "each kind of error has its status",
        "STD.1": "one message a line; nothing else on stdout; an over-long line is one error",
    },
    "The requester": {
        "REQ.1": "one call copes with a result, rounds of input, and a task",
        "REQ.2": "no poll before hint, floor, backoff and Retry-After allow it",
        "REQ.3": "a failed poll is not the task's end",
        "REQ.4": "an input request is shown once and answered once, also after a restart",
        "REQ.5": "the first terminal view wins; the time to live is a backstop",
        "REQ.6": "five outcomes; a saved reference goes on in a new process",
        "REQ.7": "cancelling and no longer waiting are two things",
        "REQ.8": "an output schema is for the final result",
    },
    "The legacy era": {
        "LEG.1": "who serves that version may keep its tasks to itself, as though there were none",
        "LEG.2": "a session is opened by initialize, and ends",
        "LEG.3": "a call is a task where capability and tool allow it, and the caller asks for one",
        "LEG.4": "tasks/result waits for the end, and then gives what the call would have given",
        "LEG.5": "cancelled before the answer says so; a task that has ended cannot be",
        "LEG.6": "isError is failed, and the result is there all the same",
        "LEG.7": "a bad cursor, an unknown or an expired id is -32602, also to who waits for a result",
        "LEG.8": "questions of a task are requests on the stream of its result",
        "LEG.9": "both eras at one endpoint; a task made in one is there in the other",
        "LEG.10": "a client takes questions as tasks of its own",
    },
    "Security and bounds": {
        "SEC.1": "the owner, and nobody else, on every operation",
        "SEC.2": "no secrets, payloads or task ids in logs and error texts; keys rotate",
        "LIM.3": "every collection has a bound; hitting it disturbs nobody else",
    },
}
