"""What a server is told at its making: HTTP.3, NEG.9."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto import TASKS_EXTENSION, HmacSealer, ServerSettings, TaskSupport, ToolDeclaration


def settings(**more: Any) -> ServerSettings:
    return ServerSettings(name="test", version="1", sealer=HmacSealer([b"k" * 32]), **more)


def test_only_the_modern_version_is_served() -> None:
    assert settings().versions == ("2026-07-28",)


def test_a_host_may_answer_methods_of_its_own() -> None:
    assert settings(methods=frozenset({"prompts/get"})).methods == {"prompts/get"}


@pytest.mark.parametrize("method", ["tasks/get", "tasks/list", "tasks/anything"])
def test_the_tasks_prefix_is_reserved(method: str) -> None:
    with pytest.raises(ValueError, match="reserved"):
        settings(methods=frozenset({"prompts/get", method}))


def test_the_legacy_capability_is_not_advertised_by_a_host_either() -> None:
    with pytest.raises(ValueError, match="2025-11-25"):
        settings(capabilities={"tasks": {"list": {}}})


def test_the_extension_is_not_advertised_by_a_host() -> None:
    """NEG.7, NEG.9: it is advertised exactly when it is served, and that differs from request to request."""
    with pytest.raises(ValueError, match="advertised by the engine"):
        settings(capabilities={"extensions": {TASKS_EXTENSION: {}}})


def test_other_extensions_are_the_hosts_own() -> None:
    assert settings(capabilities={"extensions": {"com.example/x": {}}}).capabilities


def test_a_tool_may_become_a_task_unless_it_says_otherwise() -> None:
    assert (
        ToolDeclaration(name="render", definition={"name": "render", "inputSchema": {}}).task
        is TaskSupport.OPTIONAL
    )


def test_a_tool_knows_its_header_parameters() -> None:
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    tool = ToolDeclaration(name="render", definition={"name": "render", "inputSchema": schema})
    assert [parameter.header for parameter in tool.header_parameters] == ["Mcp-Param-Region"]


def test_a_forbidden_annotation_is_refused() -> None:
    schema = {"type": "object", "properties": {"region": {"type": "object", "x-mcp-header": "Region"}}}
    with pytest.raises(ValueError, match="x-mcp-header"):
        ToolDeclaration(name="render", definition={"name": "render", "inputSchema": schema})


@pytest.mark.parametrize(
    "definition", [{}, {"name": "paint"}, {"name": "render"}, {"name": "render", "inputSchema": None}]
)
def test_a_tool_is_listed_as_it_is_called_and_with_its_arguments(definition: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="tool render: its definition has"):
        ToolDeclaration(name="render", definition=definition)
