"""Results of tools, as a person reads them. What a server sent may be anything: nothing here raises."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.highlighter import JSONHighlighter
from rich.text import Text

from mcp_tasks_adapters.cli.client.harmless import harmless, one_line

__all__ = ["as_json", "result_lines"]

BASE64_CHARS: Final = 4
BASE64_BYTES: Final = 3
KILO: Final = 1024


def result_lines(result: Mapping[str, Any]) -> Iterator[str | Text]:
    """Return what stands in the result of a tool.

    The server's text comes as it is, as a ``str``, not made fit for a terminal; structured content as JSON,
    in place of a text that says the same; anything else as a line that describes it.
    """
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    structured = "structuredContent" in result
    for block in blocks:
        if structured and _repeats(block, result["structuredContent"]):
            continue
        yield from _block(block)
    if structured:
        yield as_json(result["structuredContent"])
    elif not blocks:
        yield Text("(nothing in the result)", "dim")


def as_json(value: Any) -> Text:
    """Return a value as indented JSON, in colour where the terminal has some."""
    return JSONHighlighter()(Text(harmless(json.dumps(value, ensure_ascii=False, indent=2))))


def _repeats(block: Any, structured: Any) -> bool:
    """Whether a text block says what the structured content says, for those who cannot read that."""
    if not isinstance(block, dict) or block.get("type") != "text":
        return False
    try:
        said = json.loads(block["text"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return False
    return bool(said == structured)


def _block(block: Any) -> Iterator[str | Text]:
    kind = block.get("type") if isinstance(block, dict) else None
    match kind:
        case "text" if isinstance(block.get("text"), str):
            yield block["text"]
        case "image" | "audio":
            yield _description(kind, block.get("mimeType"), _size(block.get("data")))
        case "resource_link":
            yield _description("link", block.get("title", block.get("name")), block.get("uri"))
        case "resource" if isinstance(block.get("resource"), dict):
            resource = block["resource"]
            details = resource.get("uri"), resource.get("mimeType"), _size(resource.get("blob"))
            yield _description(kind, *details)
            if isinstance(resource.get("text"), str):
                yield resource["text"]
        case _:
            yield _description(kind if isinstance(kind, str) else "content of no known kind")


def _description(kind: str, *details: Any) -> Text:
    known = [one_line(detail) for detail in details if isinstance(detail, str) and detail]
    return Text(f"[{'  '.join([one_line(kind), *known])}]", "cyan")


def _size(base64: Any) -> str | None:
    if not isinstance(base64, str):
        return None
    size = len(base64.rstrip("=")) * BASE64_BYTES // BASE64_CHARS
    return f"{size} bytes" if size < KILO else f"{size / KILO:.1f} KiB"
