"""Who belongs where, and what that lets them do and see: HIS.3, PRX.7, SEC.1."""

from __future__ import annotations

import pytest

from mcp_tasks_proto.history import Viewer
from mcp_tasks_proto.proxy import Access, Directory, Member, Program, Project, Role, Upstream

FARM = Upstream(name="farm", label="The farm")
ARCHIVE = Upstream(name="archive")
BOTH = (FARM, ARCHIVE)

STUDIO = Directory(
    projects={
        "film": Project(profile="artists", upstreams=frozenset({"farm"}), authorizations={"farm": "film"}),
        "open": Project(),
    },
    members={
        "alice": Member(
            label="Alice", roles={"film": Role.TEAM, "open": Role.DIRECT}, authorizations={"farm": "alice"}
        ),
        "gil": Member(roles={"film": Role.DIRECT, "closed": Role.TEAM}),
    },
    programs={
        "build": Program(project="film"),
        "nightly": Program(label="The night", project="open", profile="narrow"),
        "lost": Program(project="closed"),
        "nobodys": Program(),
    },
)
ALONE = Directory(members={"alice": Member()}, programs={"build": Program()})


def test_prx7_a_member_acts_in_a_project_under_the_authorization_that_is_closest() -> None:
    assert STUDIO.access("alice", "film", BOTH) == Access(
        project="film", profile="artists", authorizations={"farm": "alice"}, caller="Alice"
    )
    assert STUDIO.access("gil", "film", BOTH) == Access(
        project="film", profile="artists", authorizations={"farm": "film"}, caller="gil"
    )
    assert STUDIO.access("alice", "open", BOTH, profile="narrow", label="Alice's laptop") == Access(
        project="open",
        profile="narrow",
        authorizations={"farm": "alice", "archive": ""},
        caller="Alice's laptop",
    )


@pytest.mark.parametrize(
    ("principal", "project"),
    [("eve", "film"), ("gil", "open"), ("gil", "closed"), ("alice", None), ("build", "film")],
)
def test_prx7_whoever_has_no_role_may_do_nothing(principal: str, project: str | None) -> None:
    assert STUDIO.access(principal, project, BOTH) is None


def test_prx7_a_program_acts_in_its_project() -> None:
    assert STUDIO.program_access("build", BOTH) == Access(
        project="film", profile="artists", authorizations={"farm": "film"}, api_key=True, caller="build"
    )
    assert STUDIO.program_access("nightly", BOTH) == Access(
        project="open",
        profile="narrow",
        authorizations={"farm": "", "archive": ""},
        api_key=True,
        caller="The night",
    )
    for principal in ("lost", "nobodys", "alice"):
        assert STUDIO.program_access(principal, BOTH) is None


def test_his3_without_projects_everybody_is_by_themselves() -> None:
    everything = {"farm": "", "archive": ""}
    assert ALONE.access("alice", None, BOTH) == Access(authorizations=everything, caller="alice")
    assert ALONE.program_access("build", BOTH) == Access(
        authorizations=everything, api_key=True, caller="build"
    )
    assert ALONE.projects_of("alice") == []


def test_his3_a_viewer_has_their_role_and_their_upstreams() -> None:
    film = frozenset({"film"})
    farm = frozenset({"The farm"})
    assert STUDIO.viewer("alice", "film", BOTH) == Viewer(principal="alice", teams=film, upstreams=farm)
    assert STUDIO.viewer("gil", "film", BOTH) == Viewer(principal="gil", direct=film, upstreams=farm)
    assert STUDIO.viewer("alice", "open", BOTH) == Viewer(
        principal="alice", direct=frozenset({"open"}), upstreams=frozenset({"The farm", "archive"})
    )


@pytest.mark.parametrize(
    ("principal", "project"), [("eve", "film"), ("gil", "closed"), ("build", "film"), ("gil", "none")]
)
def test_his3_anybody_else_views_nothing(principal: str, project: str) -> None:
    assert STUDIO.viewer(principal, project, BOTH) == Viewer(principal=principal)


def test_his3_projects_of_a_member_are_those_that_are_there() -> None:
    assert STUDIO.projects_of("alice") == ["film", "open"]
    assert STUDIO.projects_of("gil") == ["film"]
    assert STUDIO.projects_of("build") == []


def test_sec1_a_principal_is_a_member_or_a_program() -> None:
    with pytest.raises(ValueError, match="'alice' is both"):
        Directory(members={"alice": Member()}, programs={"alice": Program()})


def test_his3_somebody_is_shown_their_projects_and_who_belongs_to_them() -> None:
    film = {"project": "film", "label": "film", "role": "team"}
    assert STUDIO.shown_projects("alice") == [film, {"project": "open", "label": "open", "role": "direct"}]
    assert STUDIO.shown_project("alice", "film") == {
        **film,
        "members": [
            {"principal": "alice", "label": "Alice", "role": "team"},
            {"principal": "gil", "label": "gil", "role": "direct"},
        ],
    }


@pytest.mark.parametrize("principal", ["eve", "build"])
def test_his3_whoever_has_no_role_is_shown_no_project(principal: str) -> None:
    assert STUDIO.shown_projects(principal) == []
    assert STUDIO.shown_project(principal, "film") is None
    assert STUDIO.shown_project("gil", "closed") is None
