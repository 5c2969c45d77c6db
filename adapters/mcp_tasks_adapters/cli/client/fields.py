"""One field of a form: how it is described to a person, and what they may type for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final

from attrs import frozen

from mcp_tasks_adapters.cli.client.harmless import one_line
from mcp_tasks_proto.input_requests import check_response

__all__ = ["ABSENT", "Field", "Option", "form_fields"]

ABSENT: Final = object()
"""The field is left out."""

EMPTY_TEXT: Final = '""'
"""What to type for a text without characters, as Enter alone means something else."""
NOTHING_CHOSEN: Final = "-"

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_YES: Final = frozenset({"y", "yes", "true"})
_NO: Final = frozenset({"n", "no", "false"})
_FORMATS: Final[Mapping[str, str]] = {
    "email": "an email address",
    "uri": "an absolute URI",
    "date": "a date like 2026-07-28",
    "date-time": "a date and time like 2026-07-28T12:00:00Z",
}


@frozen
class Option:
    """One choice that a field offers."""

    value: str
    title: str


@frozen(kw_only=True)
class Field:
    """One field."""

    name: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def label(self) -> str:
        """What to call it: the title, and the name where that differs."""
        title = self.schema.get("title", self.name)
        return one_line(title if title.casefold() == self.name.casefold() else f"{title} ({self.name})")

    @property
    def description(self) -> str:
        """What its author says of it, if anything."""
        return one_line(self.schema.get("description", ""))

    @property
    def many(self) -> bool:
        """Whether several choices may be made."""
        return bool(self.schema["type"] == "array")

    @property
    def options(self) -> Sequence[Option]:
        """The choices it offers; none: it is not a choice."""
        holder = self.schema.get("items", {}) if self.many else self.schema
        titled = holder.get("anyOf" if self.many else "oneOf")
        if titled is not None:
            return [Option(option["const"], option["title"]) for option in titled]
        values = holder.get("enum", ())
        names = holder.get("enumNames", ())
        return [
            Option(value, names[index] if index < len(names) else value) for index, value in enumerate(values)
        ]

    @property
    def default(self) -> Any:
        """What the form suggests; :data:`ABSENT` where that is nothing, or what it would itself refuse."""
        default = self.schema.get("default", ABSENT)
        return ABSENT if default is ABSENT or self.problem(default) else default

    @property
    def wanted(self) -> str:
        """What to type, in words."""
        kind = self.schema["type"]
        if kind == "boolean":
            return "yes or no"
        if self.many:
            return _joined("numbers or names, with commas between them", self._amount("choices"))
        if self.options:
            return "a number or a name"
        if kind == "string":
            kind_of_text = _FORMATS.get(self.schema.get("format", ""), "text")
            return _joined(kind_of_text, self._amount("characters"))
        return _joined("a whole number" if kind == "integer" else "a number", self._amount(""))

    def read(self, typed: str) -> Any:
        """Return the value that was typed. Raises ``ValueError``, with a sentence for the person, for others.

        The value keeps to the schema.
        """
        value = self._read(typed)
        if problem := self.problem(value):
            raise ValueError(f"That will not do: it must be {problem}.")
        return value

    def show(self, value: Any) -> str:
        """Return a value as a person reads it."""
        if value is ABSENT:
            return "(left out)"
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, list):
            return ", ".join(map(self._show_choice, value)) or "(none)"
        if isinstance(value, str):
            return self._show_choice(value) or EMPTY_TEXT
        return str(value)

    def problem(self, value: Any) -> str | None:
        """Say what the value must be, and is not; ``None``: it is."""
        schema = {"type": "object", "properties": {"it": self.schema}}
        request = {"method": "elicitation/create", "params": {"message": "", "requestedSchema": schema}}
        found = check_response(request, {"action": "accept", "content": {"it": value}})
        if found is None:
            return None
        must = found.removeprefix("answer.content['it'] must ")
        if must.startswith("keep to "):
            return self._amount("choices" if self.many else "characters" if isinstance(value, str) else "")
        return must.removeprefix("be ")

    # -- reading -----------------------------------------------------------------------------------------

    def _read(self, typed: str) -> Any:
        text = typed.strip()
        match self.schema["type"]:
            case "boolean":
                return _read_boolean(text)
            case "integer":
                return _read_whole(text)
            case "number":
                return _read_number(text)
            case "array":
                return self._read_choices(text)
        if self.options:
            return self._read_choice(text)
        return "" if text == EMPTY_TEXT else typed

    def _read_choice(self, text: str) -> str:
        """Take a value, a title or the number beside it; in this order, as values may be numbers."""
        options = self.options
        for same in (str, str.casefold):
            for attribute in ("value", "title"):
                for option in options:
                    if same(text) == same(getattr(option, attribute)):
                        return option.value
        if text.isascii() and text.isdecimal() and 1 <= int(text) <= len(options):
            return options[int(text) - 1].value
        raise ValueError(f"{one_line(text)!r} is not among the choices.")

    def _read_choices(self, text: str) -> list[str]:
        if text == NOTHING_CHOSEN:
            return []
        try:
            return [self._read_choice(text)]  # a single one, which may have commas in it
        except ValueError:
            chosen = [self._read_choice(part.strip()) for part in text.split(",") if part.strip()]
        return list(dict.fromkeys(chosen))

    # -- showing -----------------------------------------------------------------------------------------

    def _show_choice(self, value: Any) -> str:
        titles = {option.value: option.title for option in self.options}
        return one_line(str(titles.get(value, value)))

    def _amount(self, unit: str) -> str:
        """Return the bounds in words: "from 1 to 10", "at least 2 choices"."""
        least, most = (
            self.schema.get(keyword)
            for keyword in (
                ("minItems", "maxItems")
                if self.many
                else ("minLength", "maxLength")
                if self.schema["type"] == "string"
                else ("minimum", "maximum")
            )
        )
        if least is None and most is None:
            return ""
        if most is None:
            bounds = f"at least {least}"
        elif least is None:
            bounds = f"at most {most}"
        elif least == most:
            bounds = f"exactly {least}"
        else:
            bounds = f"{least} to {most}" if unit else f"from {least} to {most}"
        return f"{bounds} {unit}".strip()


def form_fields(request: Mapping[str, Any]) -> list[Field]:
    """Return the fields of a form that ``check_requests`` accepts from a peer."""
    schema = request["params"]["requestedSchema"]
    required = schema.get("required", ())
    return [
        Field(name=name, schema=field, required=name in required)
        for name, field in schema["properties"].items()
    ]


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _read_boolean(text: str) -> bool:
    if text.casefold() in _YES:
        return True
    if text.casefold() in _NO:
        return False
    raise ValueError("Type yes or no.")


def _read_whole(text: str) -> int:
    if _WHOLE.fullmatch(text) is None:
        raise ValueError(f"{one_line(text)!r} is not a whole number.")
    try:
        return int(text)
    except ValueError:  # the interpreter's own bound on digits
        raise ValueError("That number has too many digits.") from None


def _read_number(text: str) -> int | float:
    if _WHOLE.fullmatch(text) is not None:
        return _read_whole(text)
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{one_line(text)!r} is not a number.")
    number = float(text)
    if not isfinite(number):
        raise ValueError("That number is out of range.")
    return number
