"""What an engine looks like in a debugger, a log, or the report of a test that failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.unit.dual_era_proxy_world import make_dual_era as make_proxy_of_both_eras
from tests.unit.legacy_requester_world import make_dual as make_requester_of_both_eras
from tests.unit.legacy_world import make_dual as make_server_of_both_eras
from tests.unit.proxy_world import make_proxy
from tests.unit.requester_world import make_host as make_requester
from tests.unit.world import make_host as make_server

HOSTS: Final[dict[str, Callable[[], Any]]] = {
    "ServerEngine": make_server,
    "DualEraServer": make_server_of_both_eras,
    "RequesterEngine": make_requester,
    "DualEraRequester": make_requester_of_both_eras,
    "ProxyEngine": make_proxy,
    "DualEraProxy": make_proxy_of_both_eras,
}


@pytest.mark.parametrize("name", HOSTS)
def test_an_engine_is_shown_in_a_line(name: str) -> None:
    """Its parts know each other: all of them together would be megabytes, and tell its secrets."""
    engine = HOSTS[name]().engine
    assert name in repr(engine)
    assert len(repr(engine)) < 120
