"""Our proxy before servers that others wrote: what holds without it holds through it.

The scenarios are those of ``test_fastmcp_server.py`` (tasks) and ``test_sdk_server.py`` (none), over HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.adapters.client_harness import LOOPS
from tests.adapters.test_cli_proxy import running
from tests.interop import test_fastmcp_server as fastmcp
from tests.interop import test_sdk_server as sdk
from tests.interop.servers import Elsewhere
from tests.interop.visitor import Scenario, over_http

OTHERWISE: Final = frozenset(
    {
        fastmcp.a_task_completes,  # it counts polls, of which there are none: the proxy pushes (PRX.14)
        sdk.results,  # a tool that is not there is the proxy's to refuse
        sdk.progress,  # of progress that waits to be sent the newest is sent
    }
)
"""Scenarios about what a proxy does in its own way."""


@contextmanager
def _proxied(server: Elsewhere, log: Path) -> Iterator[dict[str, str]]:
    """Run a server, and a proxy before it on each loop; give their URLs by loop."""
    with server.serving(log) as url:
        command = ("proxy", "--upstream", url, "--store", "memory:")
        with running(*command, "--loop", "trio") as one, running(*command, "--loop", "asyncio") as other:
            yield {"trio": one.url, "asyncio": other.url}


@pytest.fixture(scope="module")
def before_fastmcp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with _proxied(fastmcp.FASTMCP, tmp_path_factory.mktemp("fastmcp") / "server.log") as urls:
        yield urls


@pytest.fixture(scope="module")
def before_sdk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with _proxied(sdk.SDK, tmp_path_factory.mktemp("sdk") / "server.log") as urls:
        yield urls


def _through(scenarios: Sequence[Scenario]) -> list[Scenario]:
    return [scenario for scenario in scenarios if scenario not in OTHERWISE]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("scenario", _through(fastmcp.SCENARIOS), ids=lambda scenario: scenario.__name__)
def test_before_a_server_with_tasks(loop: str, before_fastmcp: dict[str, str], scenario: Scenario) -> None:
    over_http(loop, before_fastmcp[loop], scenario)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("scenario", _through(sdk.SCENARIOS), ids=lambda scenario: scenario.__name__)
def test_before_a_server_without_tasks(loop: str, before_sdk: dict[str, str], scenario: Scenario) -> None:
    over_http(loop, before_sdk[loop], scenario)
