"""A proxy's configuration file: what it means, and how its mistakes are named: PRX.7, PRX.15, HIS.3."""

from __future__ import annotations

import json
import os
import re
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner
from mcp_tasks_adapters import RequestFacts
from mcp_tasks_adapters.cli.commands import mcp_tasks
from mcp_tasks_adapters.proxy import Caller, HttpUpstream, StdioUpstream
from mcp_tasks_adapters.proxy.config import Listen, ProxyConfig, StorePlace
from mcp_tasks_adapters.proxy.config_file import ConfigError, read_config
from mcp_tasks_adapters.proxy.encryption import HandleKeys
from mcp_tasks_adapters.storing import StoreError
from mcp_tasks_adapters.trust import trusting

from mcp_tasks_proto.history import Retention, Viewer
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.proxy import (
    Access,
    Directory,
    InputKind,
    Member,
    Program,
    Project,
    ProxyLimits,
    Role,
    SealedHandles,
    StoredHandles,
    ToolProfile,
)
from tests.adapters.proxy_harness import binding

PAGE: Final = (Path(__file__).parents[2] / "docs" / "proxy.md").read_text(encoding="utf-8")
EXAMPLE: Final = re.search(r"^```toml\n(# proxy\.toml\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CHECKED: Final = re.search(
    r"^\$ mcp-tasks proxy proxy\.toml --check\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
)
WRONG: Final = re.search(
    r"^\$ mcp-tasks proxy wrong\.toml --check\nError: (.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
)

STORE_KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
OTHER_KEY = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
CERTIFICATE = Path(__file__).parent / "localhost.pem"
NIGHTLY = "canary-of-the-nightly-build"
SECRETS = {
    "FARM_TOKEN": "canary-at-the-farm",
    "NIGHTLY_BUILD_KEY": NIGHTLY,
    "EMPTY": " ",
    "SHORT": "short",
    "FOREIGN": "canary-of-the-señora",
}
DIGEST = sha256(b"a-token-of-alices-0123").hexdigest()
FARM = '[upstreams.farm]\nurl = "http://farm.example/mcp"\n'
TEAM = '[projects.film]\n[members.alice]\nroles = { film = "team" }\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with what the example names."""
    assert EXAMPLE is not None
    (tmp_path / "proxy.toml").write_text(EXAMPLE[1], encoding="utf-8")
    (tmp_path / "proxy.key").write_text(STORE_KEY)
    (tmp_path / "alice-at-the-farm.token").write_text("canary-of-alices\n")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "latin").write_bytes(b"\xe9")
    (tmp_path / "digest").write_text(f"{DIGEST.upper()}\n")
    return tmp_path


def read(folder: Path, text: str) -> ProxyConfig:
    path = folder / "it.toml"
    path.write_text(text, encoding="utf-8")
    return read_config(path, {**SECRETS, "HOME": "/home"})


def mistakes(folder: Path, text: str) -> list[tuple[int, str]]:
    with pytest.raises(ConfigError) as refused:
        read(folder, text)
    for secret in SECRETS.values():
        assert secret.strip() == "" or secret not in str(refused.value) or secret == "short"
    return [(one.line, one.text) for one in refused.value.mistakes]


# -- what it means -----------------------------------------------------------------------------------------


def test_the_example_means_what_it_says(folder: Path) -> None:
    config = read_config(folder / "proxy.toml", SECRETS)
    farm, archive = config.upstreams
    assert isinstance(farm, HttpUpstream)
    assert isinstance(archive, StdioUpstream)
    assert farm.headers == {"Authorization": "Bearer canary-at-the-farm"}
    assert farm.authorizations == {"alice": {"Authorization": "Bearer canary-of-alices"}}
    assert (archive.command, archive.env, archive.tasks) == (("python", "archive.py"), {**OTHERS}, False)
    assert config.listen == Listen(port=9000)
    assert config.store == StorePlace(place=f"sqlite:{folder / 'proxy.db'}", key_file=folder / "proxy.key")
    assert config.directory == Directory(
        projects={"film": Project(label="The film", profile="artists")},
        members={
            "alice": Member(label="Alice", roles={"film": Role.TEAM}, authorizations={"farm": "alice"}),
            "gil": Member(roles={"film": Role.DIRECT}),
        },
        programs={"nightly-build": Program(project="film")},
    )
    settings = config.proxy().settings
    assert settings.profiles == {
        "default": ToolProfile(),
        "artists": ToolProfile(
            tools=frozenset({"farm__*", "archive__search"}), task_tools=frozenset({"farm__render"})
        ),
    }
    assert (settings.promote_after_ms, settings.collapse, settings.tasks) == (20_000, False, True)
    assert settings.input_kinds == {InputKind.FORM, InputKind.URL}
    assert settings.retention == Retention(payload_ms=12 * 3_600_000, metadata_ms=30 * 86_400_000)


OTHERS: Final = {name: SECRETS[name] for name in ("EMPTY", "SHORT", "FOREIGN")}
"""What an upstream that is started hears of the environment: nothing that is a secret of the proxy's."""


def test_prx7_callers_are_told_apart_and_have_what_their_project_has(folder: Path) -> None:
    config = read_config(folder / "proxy.toml", SECRETS)
    alice, build = (config.callers or {}).values()
    assert alice == Caller(
        "alice",
        Access(
            project="film",
            profile="artists",
            authorizations={"farm": "alice", "archive": ""},
            caller="Alice's laptop",
        ),
    )
    assert config.credentials is not None
    assert config.credentials(RequestFacts(transport="http", headers={"x-api-key": NIGHTLY})) == build
    assert build.access.api_key
    assert build.access.authorizations == {"farm": "", "archive": ""}


def test_his3_people_look_at_projects_and_programs_do_not(folder: Path) -> None:
    config = read_config(folder / "proxy.toml", SECRETS)
    alice, build = (config.callers or {}).values()
    assert config.viewer(alice, "film") == Viewer(
        principal="alice", teams=frozenset({"film"}), upstreams=frozenset({"farm", "archive"})
    )
    assert config.viewer(alice, "another") == Viewer(principal="alice")
    assert config.access(alice, "film") is alice.access
    assert config.access(alice, "another") is None
    gil = Caller("gil", Access())
    assert config.access(gil, "film") == config.directory.access("gil", "film", config.upstream_settings)
    assert [one["project"] for one in config.projects(alice)] == ["film"]
    shown = config.project(alice, "film")
    assert shown is not None
    assert (shown["label"], len(shown["members"])) == ("The film", 2)
    for nobody in (build, Caller(None, Access())):
        assert (config.projects(nobody), config.project(nobody, "film")) == ((), None)
        assert config.viewer(nobody, "film") is None
        assert config.access(nobody, "film") is None


def test_a_small_file_is_enough(folder: Path) -> None:
    config = read(folder, FARM)
    assert config.callers is None
    assert config.credentials is None
    assert config.upstreams == (HttpUpstream(name="farm", url="http://farm.example/mcp", headers={}),)
    limits = config.proxy_limits
    assert limits.tasks_per_principal == limits.tasks, "all callers are one, whose bound is that of all"


def test_lim3_limits_have_the_names_of_the_core(folder: Path) -> None:
    config = read(
        folder, f"{FARM}[limits]\nconnections = 7\ntasks = 9\ntasks_per_principal = 3\nmessage_bytes = 5\n"
    )
    assert config.limits == Limits(connections=7, message_bytes=5)
    assert config.proxy_limits == ProxyLimits(tasks=9, tasks_per_principal=3)


def test_everything_else_that_can_stand_in_it(folder: Path) -> None:
    config = read(
        folder,
        """
        title = "Studio"
        instructions = "Call tools."
        [listen]
        host = "::1"
        path = "/"
        allow_hosts = ["a.example"]
        allow_origins = ["https://a.example"]
        [store]
        place = "memory:"
        [upstreams.farm]
        url = "http://farm.example/mcp"
        label = "The farm"
        listen = false
        headers = { X-Team = "film", X-Key = { variable = "FARM_TOKEN" } }
        [upstreams.local]
        command = ["run"]
        folder = "."
        environment = { MODE = "1", TOKEN = { variable = "FARM_TOKEN" } }
        [members.alice]
        tokens = [ { sha256_file = "digest", profile = "default" }, { variable = "NIGHTLY_BUILD_KEY" } ]
        [features]
        tasks = false
        collapse = true
        extensions = ["org.example/x"]
        """,
    )
    farm, local = config.upstreams
    assert farm == HttpUpstream(
        name="farm",
        url="http://farm.example/mcp",
        label="The farm",
        listen=False,
        headers={"X-Team": "film", "X-Key": "canary-at-the-farm"},
    )
    assert isinstance(local, StdioUpstream)
    assert local.cwd == str(folder)
    assert local.env is not None
    assert local.env["TOKEN"] == "canary-at-the-farm"
    assert "FARM_TOKEN" not in local.env
    assert list(config.callers or {}) == [DIGEST, sha256(NIGHTLY.encode()).hexdigest()]
    settings = config.proxy().settings
    assert settings.info == {"title": "Studio"}
    assert (settings.tasks, settings.collapse, settings.extensions) == (
        False,
        True,
        frozenset({"org.example/x"}),
    )
    assert config.fixed["listen"] == Listen(
        host="::1", path="/", allowed_hosts=("a.example",), allowed_origins=("https://a.example",)
    )
    assert config.fixed["store"] == StorePlace(place="memory:")


def test_sec2_no_secret_is_shown(folder: Path) -> None:
    assert "canary" not in repr(read_config(folder / "proxy.toml", SECRETS))


# -- mistakes ----------------------------------------------------------------------------------------------

MISTAKES: Final[list[tuple[str, int, str]]] = [
    # The upstream stands in the first two lines; what is wrong begins in the third.
    ("[listen", 3, "this is not TOML: Expected ']' at the end of a table declaration"),
    ('[upstreams.farm]\nurl = ""', 3, "this is not TOML: Cannot declare"),
    ("[listen]\nprot = 1", 4, "listen.prot: there is no such key; did you mean 'port'?"),
    ("[listen]\nx = 1", 4, "there is allow_hosts, allow_origins, host, path and port"),
    ("[lisen]", 3, "lisen: there is no such key; did you mean 'listen'?"),
    ("[listen]\nport = '1'", 4, "listen.port: is a whole number, not a string"),
    ("[listen]\nport = true", 4, "is a whole number, not true or false"),
    ("[listen]\nport = 1.5", 4, "is a whole number, not a number with a fraction"),
    ("[listen]\nport = 2026-08-01", 4, "is a whole number, not a date or a time"),
    ("[listen]\nport = 65536", 4, "is 65535 at most"),
    ("[listen]\nport = -1", 4, "is 0 at least"),
    ("[listen]\nhost = ''", 4, "listen.host: is empty: leave it out, or fill it in"),
    ("[listen]\npath = 'mcp'", 4, "a path begins with /"),
    ("[listen]\npath = '/mcp?x=1'", 4, "listen.path: a path begins with /, and has printable ASCII"),
    ("[listen]\npath = '/é'", 4, "has printable ASCII characters other than # and ?"),
    ('[listen]\nhost = "a\\u0000"', 4, "listen.host: holds a NUL character"),
    ('[listen]\nallow_hosts = ["a", "b\\u0000"]', 4, "listen.allow_hosts[1]: holds a NUL character"),
    (f"[listen]\n\nport = {'1' * 5000}", 5, "this number has too many digits"),
    (f"[listen]\nport = {'[' * 5000}{']' * 5000}", 0, "is nested too deep"),
    ("[listen]\nallow_hosts = 'a'", 4, "is an array of strings, not a string"),
    ("[listen]\nallow_hosts = [\n'a',\n1\n]", 6, "listen.allow_hosts[1]: is a string that is not empty"),
    ("[store]\nplace = 'postgres:x'", 4, "store.place: is sqlite:FILE or memory: (with the colon)"),
    ("[store]\nplace = 'sqlite:///x.db'", 4, "after sqlite: stands the path of a file, and no URL"),
    ("[store]\nplace = 'sqlite:x.db'", 4, "takes a key: name a key_file, or set MCP_TASKS_STORE_KEYS"),
    ("[store]\nplace = 'sqlite:x'\nkey_file = 'none'", 5, "none cannot be read: No such file"),
    ("[store]\nplace = 'sqlite:x'\nkey_file = 'latin'", 5, "latin are not written in Base64"),
    ("[store]\nkey_file = 'proxy.key'", 4, "is of no use without a place"),
    (
        "[features]\ninput = ['forms']",
        4,
        "features.input[0]: there is no kind of input 'forms'; did you mean",
    ),
    ("[features]\npromote_after_ms = 0", 4, "is 1 at least"),
    ("[features]\ntasks = 1", 4, "is true or false, not a whole number"),
    ("[features]\nextensions = ['io.modelcontextprotocol/tasks']", 0, "cannot be served: io.modelcontext"),
    ("[retention]\npayload_hours = 25", 4, "is 24 at most: results are kept for a day, not longer"),
    ("[retention]\nmetadata_days = 91", 4, "is 90 at most: records of tasks are kept for ninety days"),
    ("[limits]\ntask = 1", 4, "limits.task: there is no such key; did you mean 'tasks'?"),
    ("[limits]\ntasks = 0", 4, "limits.tasks: is 1 at least"),
    ("[limits]\nmessage_depth = 257", 4, "limits.message_depth: is 256 at most"),
    (f"[limits]\nbody_timeout_ms = {10**400}", 4, "limits.body_timeout_ms: is 9007199254740991 at most"),
    # upstreams
    (
        "[upstreams.a__b]\nurl = 'http://a.example/'",
        3,
        "an upstream's name has letters, digits, - and single _",
    ),
    ("[upstreams.a]", 3, "upstreams.a: has either a url, or the command that starts it"),
    ("[upstreams.a]\nurl = 'http://a.example/'\ncommand = ['x']", 3, "has either a url, or the command"),
    ("[upstreams.a]\nurl = 'ftp://a.example/'", 4, "an endpoint is an http:// or https:// URL"),
    ("[upstreams.a]\nurl = 'http://canary:x@a.example/'", 4, "not written here: say bearer = { file"),
    ("[listen]\nallow_origins = ['a.example']", 4, "allow_origins[0]: is an origin as browsers send it"),
    ("[listen]\nallow_hosts = ['http://a.example']", 4, "listen.allow_hosts[0]: is a host, with no http://"),
    ("[members.a]\nroles = {}", 3, "members.a: has no role in a project"),
    ("[upstreams.a]\nurl = 1", 4, "upstreams.a.url: is a string, not a whole number"),
    ("[upstreams.a]\ncommand = []", 4, "is empty: write the program and its arguments"),
    ("[upstreams.a]\ncommand = 'x'", 4, "is an array of strings, not a string"),
    ("[upstreams.a]\ncommand = ['x']\nfolder = 'none'", 5, "there is no such folder"),
    ('[upstreams.a]\ncommand = ["x\\u0000"]', 4, "upstreams.a.command[0]: holds a NUL character"),
    ("[upstreams.a]\ncommand = ['x']\nenvironment = { 'A=B' = 'c' }", 5, "is no name of a variable"),
    ("[upstreams.a]\ncommand = ['x']\nurls = 'x'", 5, "there is no such key"),
    ("[upstreams.a]\nurl = 'http://a.example/'\nlabel = 'farm'", 3, "has the label of farm"),
    ("[upstreams]\na = 1", 4, "upstreams.a: is a table, not a whole number"),
    (
        "headers = { Authorization = 'Bearer canary' }",
        3,
        "a credential is not written here: say { file = … }",
    ),
    ("headers = { 'a b' = 'x' }", 3, "is no name of a header"),
    ("headers = { Mcp-Method = 'x' }", 3, "the header Mcp-Method is set by the protocol"),
    ("ca_file = 'none.pem'", 3, "upstreams.farm.ca_file: "),
    ("ca_file = 'empty'", 3, "holds no certificates as PEM"),
    ("era = 'new'", 3, "upstreams.farm.era: there is no era 'new'; there is modern and legacy"),
    ("[handles]\nkey_file = 'none'", 4, "handles.key_file: The keys in "),
    ("[handles]\nkey_file = 'digest'", 4, "handles.key_file: A key to seal handles with is 32 bytes long"),
    ("[features]\nlegacy = 'always'", 4, "no choice 'always'; there is ignore, serve and refuse"),
    ("headers = { X-Y = 'é' }", 3, "is not printable ASCII"),
    ("headers = { x-y = '1', X-Y = '2' }", 3, "upstreams.farm.headers.X-Y: is there twice"),
    (
        "bearer = 'canary'",
        3,
        "farm.bearer: a credential is not written here: say { file = … } or { variable = … }",
    ),
    ("bearer = {}", 3, "names a secret: { file = … } or { variable = … }"),
    ("bearer = { file = 'empty' }", 3, "upstreams.farm.bearer.file: empty is empty"),
    ("bearer = { file = 'none' }", 3, "none cannot be read: No such file or directory"),
    ("bearer = { file = 'latin' }", 3, "latin is not text"),
    ("bearer = { variable = 'EMPTY' }", 3, "the variable EMPTY is not set"),
    ("bearer = { file = 'two lines' }", 3, "is not one line of printable ASCII"),
    # profiles, projects and people
    ("[profiles.a]\ntool = ['x']", 4, "profiles.a.tool: there is no such key; did you mean 'tools'?"),
    ("[projects.a]", 3, "projects: nobody is let in: add [members.NAME] or [api_keys.NAME]"),
    ("[members.a]\ntokens = [1]", 4, "members.a.tokens[0]: is a table"),
    (
        "[members.a]\nroles = { b = 'team' }",
        4,
        "members.a.roles.b: there is no project of this name; there is none",
    ),
    ('[members.""]', 3, 'members."": a name is empty'),
    ("[api_keys.a]\nsha256 = '00'", 4, "is not a SHA-256 digest, which has 64 hexadecimal digits"),
    ("[api_keys.a]", 3, "api_keys.a: has one credential: sha256, sha256_file or variable"),
    ("[api_keys.a]\nkey = 'canary'", 4, "a credential is not written here: say sha256 ="),
    ("[api_keys.a]\nvariable = 'SHORT'", 4, "the variable SHORT holds fewer than 16 characters"),
    ("[api_keys.a]\nvariable = 'NONE'", 4, "the variable NONE is not set"),
    ("[api_keys.a]\nvariable = 'FOREIGN'", 4, "FOREIGN holds no line of printable ASCII: no header has it"),
    ("[api_keys.a]\nsha256_file = 'none'", 4, "none cannot be read"),
]


@pytest.mark.parametrize(("text", "line", "complaint"), MISTAKES, ids=[text[:60] for text, _, _ in MISTAKES])
def test_a_mistake_is_named_with_its_line(folder: Path, text: str, line: int, complaint: str) -> None:
    (folder / "two lines").write_text("a\nb")
    ((found, said),) = mistakes(folder, f"{FARM}{text}\n")
    assert complaint in said
    assert "canary" not in said
    assert found == line


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        # The project, its member and her role stand in lines 3 to 5.
        (
            "tokens = [ { token = 'canary' } ]",
            6,
            "members.alice.tokens[0].token: a credential is not written",
        ),
        (
            "label = 'x'\n[members.bob]",
            7,
            'members.bob: has no role in a project: write roles = { PROJECT = "team" }',
        ),
        ("[members.bob]\nroles = { film = 'boss' }", 7, "members.bob.roles.film: a role is team or direct"),
        ("[members.bob]\nroles = { films = 'team' }", 7, "no project of this name; did you mean 'film'?"),
        ("[api_keys.alice]\nproject = 'film'\nvariable = 'FARM_TOKEN'", 6, "a member has this name"),
        ("[api_keys.b]\nvariable = 'FARM_TOKEN'", 6, "is in no project: write project = with one of film"),
        ("[api_keys.b]\nproject = 'fim'\nvariable = 'FARM_TOKEN'", 7, "there is no project 'fim'; did you"),
        ("authorizations = { farm = 'a' }", 6, "farm has no authorization 'a': add [upstreams.farm.authoriz"),
        ("[projects.b]\nprofile = 'b'", 7, "projects.b.profile: there is no profile 'b'; there is default"),
        ("authorizations = { fam = 'a' }", 6, "there is no upstream of this name; did you mean 'farm'?"),
        (
            "[projects.b]\nupstreams = ['fam']",
            7,
            "projects.b.upstreams[0]: there is no upstream 'fam'; did you",
        ),
        (
            "tokens = [ { project = 'x', variable = 'FARM_TOKEN' } ]",
            6,
            "there is no project with a role of this member's 'x'",
        ),
        (
            "[[members.alice.tokens]]\nvariable = 'FARM_TOKEN'\n[api_keys.b]\nproject = 'film'\n"
            "variable = 'FARM_TOKEN'",
            8,
            "api_keys.b: has the same credential as what stands in line 6",
        ),
        (
            "[projects.b]\n[members.bob]\nroles = { film = 'team', b = 'team' }\n"
            "tokens = [ { variable = 'FARM_TOKEN' } ]",
            9,
            "members.bob.tokens[0]: says no project: its calls are made for one of film and b",
        ),
        (
            "[upstreams.old]\ncommand = ['x']\n[projects.b]\nauthorizations = { old = 'a' }",
            9,
            "a server on stdio knows no authorizations",
        ),
        (
            "[upstreams.old]\ncommand = ['x']\n[profiles.b]\ntools = ['old__*', '*', 'od__x', 'farm__']",
            9,
            "profiles.b.tools[2]: no tool is called 'od__x': each begins with farm__ or old__",
        ),
    ],
)
def test_prx7_a_mistake_about_people_is_named(folder: Path, text: str, line: int, complaint: str) -> None:
    found, said = mistakes(folder, f"{FARM}{TEAM}{text}\n")[0]
    assert complaint in said
    assert found == line


GONE = "[projects.film]\ndeleted = true\n[projects.other]\n"


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        (
            "[members.a]\nroles = { film = 'team' }",
            7,
            "members.a.roles.film: this project is deleted: take it",
        ),
        (
            "[api_keys.a]\nproject = 'film'\nvariable = 'FARM_TOKEN'",
            7,
            "api_keys.a.project: this project is de",
        ),
        ("[api_keys.a]\nvariable = 'FARM_TOKEN'", 6, "write project = with one of other and film"),
        ("[members.a]\nroles = { film = 'boss' }", 7, "members.a.roles.film: a role is team or direct"),
    ],
)
def test_his4_nobody_has_a_role_in_a_deleted_project(
    folder: Path, text: str, line: int, complaint: str
) -> None:
    found = mistakes(folder, f"{FARM}{GONE}{text}\n")
    assert any(where == line and complaint in said for where, said in found)


def test_his4_where_all_projects_are_deleted_nobody_has_everything(folder: Path) -> None:
    text = f"{FARM}[projects.film]\ndeleted = true\n"
    (found,) = mistakes(folder, f"{text}[members.a]\n")
    assert "members.a: has no role in a project" in found[1]
    (found,) = mistakes(folder, text)
    assert "nobody is let in" in found[1]


def test_his4_a_deleted_project_is_named_to_the_proxy(folder: Path) -> None:
    text = f"{FARM}{GONE}[members.a]\nroles = {{ other = 'team' }}\n"
    config = read(folder, text)
    assert config.proxy().settings.deleted_projects == {"film"}
    assert list(config.directory.projects) == ["other"]
    code, said, _ = check(folder, "it.toml")
    assert code == 0
    assert "project film is deleted: what is kept of it is removed\n" in said


def test_all_mistakes_are_named_at_once_in_the_order_of_their_lines(folder: Path) -> None:
    found = mistakes(folder, "[listen]\nprot = 1\n[retention]\npayload_hours = 99\n")
    assert [line for line, _ in found] == [0, 2, 4]
    assert found[0][1] == "upstreams: there is no upstream: add [upstreams.NAME] with a url or a command"


def test_an_upstream_with_a_mistake_is_not_unknown_as_well(folder: Path) -> None:
    text = '[upstreams.a]\nurl = "x"\n[projects.b]\nupstreams = ["a"]\nauthorizations = { a = "c" }\n'
    (found,) = mistakes(folder, f"{text}[members.d]\nroles = {{ b = 'team' }}\n")
    assert found[0] == 2


def test_a_file_that_cannot_be_read_is_named(folder: Path) -> None:
    for name, complaint in (
        ("none.toml", "cannot be read: No such file"),
        ("latin", "is not written in UTF-8"),
    ):
        with pytest.raises(ConfigError, match=f"{name}: {complaint}"):
            read_config(folder / name, {})


# -- --check -----------------------------------------------------------------------------------------------


def check(folder: Path, *options: str) -> tuple[int, str, str]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("MCP_TASKS_")]:
            patch.delenv(name)
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        programs = folder / "programs"
        programs.mkdir(exist_ok=True)
        (programs / "python").touch(0o700)
        patch.setenv("PATH", str(programs))
        patch.chdir(folder)
        ended = CliRunner().invoke(mcp_tasks, ["proxy", *options, "--check"])
    return ended.exit_code, ended.stdout, ended.stderr


def test_prx2_check_says_what_each_caller_would_see(folder: Path) -> None:
    assert CHECKED is not None
    assert check(folder, "proxy.toml") == (0, CHECKED[1].replace("/etc/studio", str(folder)), "")


def test_prx2_check_says_it_to_programs(folder: Path) -> None:
    code, said, _ = check(folder, "proxy.toml", "--json", "--port", "1234", "--store", "memory:")
    found: dict[str, Any] = json.loads(said)
    assert code == 0
    assert (found["listen"]["port"], found["store"], found["mistakes"]) == (1234, "memory:", [])
    alice, build = found["callers"]
    assert (alice["principal"], alice["role"], build["credential"]) == ("alice", "team", "api_key")
    farm, archive = alice["upstreams"]
    assert farm == {
        "name": "farm",
        "authorization": "alice",
        "tools": ["farm__*"],
        "taskTools": ["farm__render"],
        "tasks": {
            "offered": True,
            "row": "relay",
            "reason": "caller, proxy and upstream all take tasks",
        },
        "upstreamWithoutTasks": {"row": "promote", "reason": "the upstream advertises no tasks"},
        "callerWithoutTasks": {"row": "undeclared", "reason": "this request does not declare tasks"},
    }
    assert archive["tasks"]["reason"] == "the project's profile allows no tasks for this tool"
    assert found["lookingOnly"] == [{"principal": "gil", "project": "film", "role": "direct"}]
    for secret in ("canary", DIGEST):
        assert secret not in said


def test_check_names_mistakes_to_people_and_to_programs(folder: Path) -> None:
    assert WRONG is not None
    wrong = f"[listen]\nport = 1\nprot = 2\n\n[retention]\npayload_hours = 25\n{FARM}"
    (folder / "wrong.toml").write_text(wrong, encoding="utf-8")
    code, said, complaint = check(folder, "wrong.toml")
    assert (code, said, complaint) == (1, "", f"Error: {WRONG[1]}")
    code, said, complaint = check(folder, "wrong.toml", "--json")
    assert (code, complaint) == (1, "")
    assert [one["line"] for one in json.loads(said)["mistakes"]] == [3, 6]


def test_check_knows_callers_who_see_nothing(folder: Path) -> None:
    (folder / "it.toml").write_text(
        f"{FARM}[profiles.none]\ntools = []\n[projects.a]\nupstreams = []\n[projects.b]\nprofile = 'none'\n"
        "[members.x]\nroles = { a = 'team', b = 'team' }\n"
        "tokens = [ { project = 'a', variable = 'FARM_TOKEN' },"
        " { project = 'b', sha256_file = 'digest' } ]\n",
        encoding="utf-8",
    )
    code, said, _ = check(folder, "it.toml")
    assert code == 0
    assert "x, token for a (team), profile default\n  sees no upstream\n" in said
    assert "x, token for b (team), profile none\n  farm\n    tools: none, by the profile none\n" in said


def test_check_knows_programs_that_are_not_there(folder: Path) -> None:
    (folder / "own").touch(0o700)
    (folder / "it.toml").write_text(
        "[upstreams.a]\ncommand = ['python', 'x.py']\n[upstreams.b]\ncommand = ['pithon', 'x.py']\n"
        "[upstreams.c]\ncommand = ['./own']\nfolder = '.'\n",
        encoding="utf-8",
    )
    code, said, _ = check(folder, "it.toml")
    assert code == 0
    assert "upstream a: python x.py\n" in said
    assert "upstream b: pithon x.py (here there is no such program)\n" in said
    assert "upstream c: ./own\n" in said


# -- handles that carry their binding, callers and upstreams of 2025-11-25 ----------------------------------


def test_prx5_handles_carry_their_binding_where_there_are_keys(folder: Path) -> None:
    text = f"[handles]\nkey_file = 'proxy.key'\n{FARM}"
    one, other = read(folder, text), read(folder, text)
    assert one.fixed["handles"] == other.fixed["handles"] == HandleKeys([bytes(32)])
    assert STORE_KEY not in repr(one)
    codec, same = one.proxy().codec, other.proxy().codec
    assert isinstance(codec, SealedHandles)
    handle = codec.issue(binding(), bytes(32))
    assert same.open(handle) == binding(handle)
    state = one.proxy().settings.sealer.seal(b"a round")
    assert other.proxy().settings.sealer.open(state) == b"a round"
    assert read(folder, FARM).proxy().codec == StoredHandles()
    assert read(folder, FARM).proxy().settings.sealer.open(state) is None


def test_prx5_keys_for_handles_may_come_from_the_environment(folder: Path) -> None:
    (folder / "it.toml").write_text(FARM, encoding="utf-8")
    config = read_config(folder / "it.toml", {"MCP_TASKS_HANDLE_KEYS": f"{STORE_KEY} {OTHER_KEY}"})
    assert config.handle_keys == HandleKeys([bytes(32), bytes([1]) * 32])
    with pytest.raises(ConfigError, match="written in Base64"):
        read_config(folder / "it.toml", {"MCP_TASKS_HANDLE_KEYS": "?"})


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [([], "no key"), ([bytes(16)], "32 bytes"), ([bytes(32), bytes(32)], "are the same")],
)
def test_prx5_keys_for_handles_are_checked(keys: list[bytes], complaint: str) -> None:
    with pytest.raises(StoreError, match=complaint):
        HandleKeys(keys)


@pytest.mark.parametrize(
    ("legacy", "bridging", "let_in"),
    [("ignore", False, True), ("serve", True, True), ("refuse", False, False)],
)
def test_leg1_what_callers_of_2025_11_25_get(folder: Path, legacy: str, bridging: bool, let_in: bool) -> None:
    settings = read(folder, f"[features]\nlegacy = '{legacy}'\n{FARM}").proxy().settings
    assert (settings.bridging, settings.legacy_callers) == (bridging, let_in)
    (folder / "it.toml").write_text(FARM, encoding="utf-8")
    _, said, _ = check(folder, "it.toml", "--json", "--legacy", legacy)
    assert json.loads(said)["legacy"] == legacy


def test_an_upstream_may_be_said_to_be_of_an_era(folder: Path) -> None:
    config = read(folder, f"{FARM}era = 'legacy'\n[upstreams.old]\ncommand = ['x']\nera = 'modern'\n")
    assert [one.era for one in config.proxy().settings.upstreams] == ["legacy", "modern"]


def test_certificates_are_looked_for_from_the_folder_of_the_configuration(folder: Path) -> None:
    (folder / "ca.pem").write_text(CERTIFICATE.read_text())
    one, other = (read(folder, f"{FARM}ca_file = 'ca.pem'\n").upstreams[0] for _ in range(2))
    assert isinstance(one, HttpUpstream)
    assert one.ssl_context is trusting(folder / "ca.pem")
    assert one == other, "or it would be talked to anew on each reload"
