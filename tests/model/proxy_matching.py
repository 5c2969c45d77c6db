"""Whether what a proxy under test does is what was wanted, and says nothing that it must not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from re import compile as pattern
from typing import Any, Final

from mcp_tasks_proto.proxy import Binding, DrawRandom, LoadTask, SaveBinding, SaveSnapshot, SendUpstream
from mcp_tasks_proto.testing.model.proxy import complete, kinds_of
from tests.model.proxy_wants import Binds, Draws, Keeps, Loads, Sends, Want

__all__ = ["check_secrets", "fits", "has_all", "is_sent", "same_view"]

SECRET: Final = pattern(r"\bup-[0-9]+\b(?!-)")
"""The ids of all upstreams."""


def same_view(view: Mapping[str, Any], modelled: Mapping[str, Any]) -> bool:
    """Whether two views are the same; that of the proxy's own tasks has no ``lastUpdatedAt`` in the model."""
    later = modelled.get("lastUpdatedAt", view["lastUpdatedAt"]) == view["lastUpdatedAt"]
    return later and complete(view).result == complete(modelled).result


def fits(want: Want, effect: LoadTask | SaveBinding | SaveSnapshot | DrawRandom) -> bool:
    """Whether this is what was wanted of the host."""
    match want, effect:
        case Loads(handle=handle), LoadTask():
            return handle == effect.handle
        case Draws(), DrawRandom():
            return True
        case Binds(handle=handle, binding=wanted), SaveBinding(binding=binding, entry=entry):
            assert binding is not None
            assert binding.handle == entry.handle == handle, "PRX.5: of the randomness that was drawn"
            return has_all(binding, wanted)
        case Keeps(handle=handle, view=view, polled=polled), SaveSnapshot(snapshot=snapshot):
            as_wanted = handle == snapshot.handle and polled == effect.observation.polled
            return as_wanted and same_view(snapshot.view, view)
    return False


def has_all(binding: Binding, wanted: Mapping[str, Any]) -> bool:
    """Whether a binding is as it was wanted."""
    return all(getattr(binding, name) == value for name, value in wanted.items())


def is_sent(want: Want, effect: SendUpstream) -> bool:
    """Whether this is the request that was wanted (PRX.1, PRX.3)."""
    if not isinstance(want, Sends):
        return False
    message = effect.message
    params = dict(message["params"])
    declared = params.pop("_meta")["io.modelcontextprotocol/clientCapabilities"]
    return (
        (effect.upstream, effect.authorization) == (want.upstream, want.authorization)
        and (message["method"], params) == (want.method, dict(want.params))
        and ("io.modelcontextprotocol/tasks" in declared.get("extensions", {})) is want.declares
        and kinds_of(declared) == want.kinds
        and effect.task_path is want.on_task_path
    )


def check_secrets(message: Mapping[str, Any]) -> None:
    """PRX.8: no upstream's id is told, but by the tool itself."""
    result = message.get("result", message.get("params", message.get("error")))
    told = json.dumps(without_content(result))
    assert not SECRET.search(told), f"an upstream's id: {told}"


def without_content(value: Any) -> Any:
    """Leave out what a tool wrote."""
    if isinstance(value, Mapping):
        return {name: without_content(one) for name, one in value.items() if name != "content"}
    return [without_content(one) for one in value] if isinstance(value, list) else value
