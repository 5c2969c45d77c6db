"""A dashboard of a proxy that has its projects and people from a file: HIS.3, PRX.7."""

from __future__ import annotations

import asyncio
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define
from mcp_tasks_adapters.proxy import Proxy
from mcp_tasks_adapters.proxy.config_file import read_config

from tests.adapters.dashboard_harness import Answered, Farm, Scene, Town, serving
from tests.adapters.http_harness import PATIENCE_SECONDS, mcp_headers, message

FILE = """
[upstreams.farm]
url = "{url}"
label = "The farm"

[projects.film]
label = "The film"
[projects.other]

[members.alice]
label = "Alice"
roles = {{ film = "team" }}
tokens = [{{ sha256 = "{alice}" }}]

[members.gil]
roles = {{ film = "{role}" }}
tokens = [{{ sha256 = "{gil}" }}]

[members.eve]
roles = {{ other = "team" }}
tokens = [{{ sha256 = "{eve}" }}]

[api_keys.build]
project = "film"
sha256 = "{build}"
"""
PEOPLE = ("alice", "gil", "eve", "build")


def token(who: str) -> str:
    return f"a-long-token-of-{who}"


def written(path: Path, url: str, role: str = "direct") -> Path:
    digests = {who: sha256(token(who).encode()).hexdigest() for who in PEOPLE}
    path.write_text(FILE.format(url=url, role=role, **digests), encoding="utf-8")
    return path


def bearer(who: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(who)}"}


@define(eq=False)
class Reload:
    """Puts another declaration in force, on the loop's thread."""

    loop: str
    _post: Any = None
    _change: Any = None

    def running(self, change: Any) -> None:
        """Take what does it."""
        self._change = change
        if self.loop == "trio":
            self._post = trio.lowlevel.current_trio_token().run_sync_soon
        else:
            self._post = asyncio.get_running_loop().call_soon_threadsafe

    def __call__(self, proxy: Proxy) -> None:
        """Do it."""
        done = threading.Event()

        def change() -> None:
            self._change(proxy)
            done.set()

        self._post(change)
        assert done.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize("loop", ["trio", "asyncio"])
def test_his3_projects_and_members_of_a_file(loop: str, tmp_path: Path) -> None:
    farm, path, reload = Farm(), tmp_path / "proxy.toml", Reload(loop)
    with farm.server:
        proxy = read_config(written(path, farm.server.url)).proxy()
        with serving(loop, proxy, running=reload.running) as port:
            scene = Scene(port, Town(), farm)

            def ask(who: str, path: str, method: str = "GET", body: Any = None) -> Answered:
                return scene.ask(method, path, None, body, bearer(who))

            body = message("tools/call", {"name": "work", "arguments": {}})
            made = scene.ask("POST", "/mcp", None, body, {**dict(mcp_headers(body)), **bearer("alice")})
            task = scene.path(made.json["result"]["taskId"])

            (row,) = ask("gil", scene.path()).json["tasks"]
            assert (row["caller"], row["upstream"], row["project"]) == ("Alice", "The farm", "film")
            assert ask("alice", f"{task}/payload").json["task"]["status"] == "working"
            assert ask("gil", f"{task}/payload").reason == "not_allowed"
            assert ask("alice", f"{task}/assignee", "PUT", {"assignee": "eve"}).reason == "no_such_member"
            assert ask("alice", f"{task}/assignee", "PUT", {"assignee": "gil"}).status == 200
            assert {ask(who, task).reason for who in ("eve", "build")} == {"not_found"}
            assert ask("mallory", task).reason == "not_authorized"

            film = {"project": "film", "label": "The film", "role": "direct"}
            assert ask("gil", "/projects/").json == {"projects": [film]}
            assert ask("build", "/projects/").json == {"projects": []}
            people = ask("gil", "/projects/film").json["project"].pop("members")
            assert [one["principal"] for one in people] == ["alice", "gil"]
            assert {ask(who, "/projects/film").reason for who in ("eve", "build")} == {"not_found"}
            assert {ask("mallory", path).reason for path in ("/projects/", "/projects/film")} == {
                "not_authorized"
            }
            assert ask("gil", "/projects/film", "PUT", {}).reason == "bad_method"

            assert ask("gil", f"{task}/assignee", "DELETE").reason == "not_allowed"
            reload(read_config(written(path, farm.server.url, "team")).proxy())
            assert ask("gil", f"{task}/assignee", "DELETE").status == 200
