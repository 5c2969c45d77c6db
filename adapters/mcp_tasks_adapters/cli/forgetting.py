"""``mcp-tasks proxy --forget-project``: what is kept of a project is removed from the store of a proxy that
does not run (HIS.4). One that runs is told by its configuration."""

from __future__ import annotations

import asyncio
from typing import Final

from mcp_tasks_adapters.asyncio_h11.loop import opened
from mcp_tasks_adapters.cli.proxy import choose_proxy_store
from mcp_tasks_adapters.cli.serve import ServeError
from mcp_tasks_adapters.proxy import ProxyStore
from mcp_tasks_adapters.proxy.config import ProxyConfig
from mcp_tasks_adapters.proxy.storing import EntriesRead, ReadEntries
from mcp_tasks_proto.history import Place, place_of
from mcp_tasks_proto.proxy import Purge

__all__ = ["forget_project"]

STRETCH: Final = 1000
"""Entries that are counted at a time."""


def forget_project(config: ProxyConfig, project: str) -> str:
    """Remove what is kept of a project; return what to say of it.

    Raises :class:`~mcp_tasks_adapters.cli.serve.ServeError` for a project that the configuration has, and
    :class:`~mcp_tasks_adapters.storing.StoreError` for a store that cannot be used, or is in use.
    """
    if project in config.directory.projects:
        raise ServeError(
            f"{project} is a project of the configuration: take it out, or say deleted = true there, which a "
            "proxy that runs heeds on SIGHUP."
        )
    chosen = choose_proxy_store(config.store.place, config.store.key_file)
    place = config.store.place or "memory:"
    if place.startswith("memory:"):
        raise ServeError("What is kept in memory ends with its proxy: name the file, --store sqlite:FILE.")
    tasks = asyncio.run(_forget(chosen.store, project))
    return f"removed from {place}: {tasks} {'task' if tasks == 1 else 'tasks'} of {project}"


async def _forget(store: ProxyStore, project: str) -> int:
    async with opened(store) as kept:
        tasks, after = 0, None
        while entries := (await _read(kept, project, after)).entries:
            tasks, after = tasks + len(entries), place_of(entries[-1])
        purge = Purge(
            now_ms=0,
            payloads_before_ms=0,
            metadata_before_ms=0,
            projects=frozenset({project}),
        )
        kept.submit(purge, lambda _: None)
        if (await _read(kept, project, None)).entries:
            raise ServeError(f"What is kept of {project} could not be removed; the log says why.")
    return tasks


async def _read(store: ProxyStore, project: str, after: Place | None) -> EntriesRead:
    answer = asyncio.get_running_loop().create_future()
    store.submit(ReadEntries(project=project, after=after, most=STRETCH, token="read"), answer.set_result)
    fact = await answer
    if not isinstance(fact, EntriesRead):
        raise ServeError("The store cannot be read; the log says why.")
    return fact
