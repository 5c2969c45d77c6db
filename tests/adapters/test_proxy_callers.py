"""Who calls a proxy, by a file of credentials (PRX.7)."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from mcp_tasks_adapters import RequestFacts, Unauthorized
from mcp_tasks_adapters.proxy import Caller, Credentials, CredentialsError

from mcp_tasks_proto.proxy import Access

TOKEN = "a-token-of-alices-0123"
API_KEY = "a-key-of-a-program-0123"
FILE = f"""
[[caller]]
principal = "alice"
token = "{TOKEN}"
project = "film"
profile = "artists"
label = "Alice's laptop"

[[caller]]
principal = "build"
api_key_sha256 = "{sha256(API_KEY.encode()).hexdigest().upper()}"
"""
ALICE = Caller("alice", Access(project="film", profile="artists", caller="Alice's laptop"))
BUILD = Caller("build", Access(api_key=True, caller="build"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "callers.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def asked(**headers: str) -> RequestFacts:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return RequestFacts(transport="http", headers=named)


def test_prx7_a_token_and_a_key_name_their_callers(path: Path) -> None:
    credentials = Credentials.from_file(path)
    assert credentials(asked(authorization=f"Bearer {TOKEN}")) == ALICE
    assert credentials(asked(authorization=f"bearer  {TOKEN} ")) == ALICE
    assert credentials(asked(authorization=f"Bearer {API_KEY}")) == BUILD
    assert credentials(asked(x_api_key=API_KEY)) == BUILD


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer "},
        {"authorization": TOKEN},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer another"},
        {"authorization": "Bearer another", "x_api_key": API_KEY},
        {"x_api_key": TOKEN},
        {"x_api_key": "\udcff"},
    ],
)
def test_sec1_anything_else_is_turned_away(path: Path, headers: dict[str, str]) -> None:
    with pytest.raises(Unauthorized) as refused:
        Credentials.from_file(path)(asked(**headers))
    assert refused.value.www_authenticate == "Bearer"


def test_sec2_credentials_are_not_kept(path: Path) -> None:
    assert TOKEN not in repr(vars(Credentials.from_file(path)))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "has to consist of"),
        ("[[caller]]\n[other]\n", "has to consist of"),
        ("caller = 1", "has to consist of"),
        ("caller = [1]", "its members are strings"),
        ("[[caller", "is not TOML"),
        ('[[caller]]\ntoken = "0123456789abcdef"', "caller 1: it has no principal"),
        ('[[caller]]\nprincipal = 1\ntoken = "0123456789abcdef"', "its members are strings"),
        ('[[caller]]\nprincipal = "a"', "it has one of"),
        ('[[caller]]\nprincipal = "a"\ntoken = "x"\napi_key = "y"', "it has one of"),
        ('[[caller]]\nprincipal = "a"\ntoken = "short"', "fewer than 16 characters"),
        ('[[caller]]\nprincipal = "a"\ntoken = "señoras-token-0123"', "its token is not printable ASCII"),
        (f"x = {'1' * 5000}", "is not TOML"),
        (f"x = {'[' * 5000}{']' * 5000}", "is not TOML"),
        ('[[caller]]\nprincipal = "a"\ntoken_sha256 = "abc"', "not 64 hexadecimal digits"),
        ('[[caller]]\nprincipal = "a"\ntokens = "0123456789abcdef"', "no member 'tokens'"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "callers.toml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(CredentialsError, match=complaint):
        Credentials.from_file(path)


def test_a_credential_is_one_callers(tmp_path: Path) -> None:
    path = tmp_path / "callers.toml"
    path.write_text(f'{FILE}\n[[caller]]\nprincipal = "eve"\napi_key = "{TOKEN}"\n', encoding="utf-8")
    with pytest.raises(CredentialsError, match="caller 3: another one has the same credential") as refused:
        Credentials.from_file(path)
    assert TOKEN not in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="No such file"):
        Credentials.from_file(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'[[caller]]\nprincipal = "\xe9"')
    with pytest.raises(CredentialsError, match="is not TOML"):
        Credentials.from_file(tmp_path / "latin.toml")
