"""Questions as conversations: what is shown, what is typed, and what comes of it. No terminal in here.

A conversation says what stands on the screen, in lines, and takes one typed line after the other until it
has an answer. It can be declined and cancelled at every prompt, and nothing is accepted but by a line that
says so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from rich.text import Text

from mcp_tasks_adapters.cli.client.fields import ABSENT, EMPTY_TEXT, NOTHING_CHOSEN, Field, form_fields
from mcp_tasks_adapters.cli.client.harmless import cut, harmless, one_line
from mcp_tasks_adapters.cli.client.results import as_json
from mcp_tasks_proto.input_requests import check_requests, check_response

__all__ = ["Conversation", "conversation", "details", "headline"]

ELICITATION: Final = "elicitation/create"

DECLINE: Final = "/decline"
CANCEL: Final = "/cancel"
BACK: Final = "/back"
SKIP: Final = "/skip"

MESSAGE_CHARS: Final = 20_000
"""The most that is shown of what a server says with a question."""
OPTIONS_SHOWN: Final = 100
"""Of the choices of one field."""

YES: Final = frozenset({"y", "yes"})
NO: Final = frozenset({"n", "no"})

Lines = Sequence[Text]


class Conversation(ABC):
    """One question, until it is answered."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.request = request
        self.response: Mapping[str, Any] | None = None
        """The answer, once there is one."""

    def opening(self) -> Lines:
        """Return what is shown first: the server's words, and the way out."""
        message = harmless(cut(self.request["params"]["message"], MESSAGE_CHARS))
        return [*(Text(line, "bold") for line in message.splitlines()), *self._explanation()]

    @abstractmethod
    def prompt(self) -> tuple[Lines, str]:
        """Return what is shown before the next line is typed, and what stands to its left.

        Nothing is shown again that stands right above.
        """

    def enter(self, line: str | None) -> Lines:
        """Take a typed line, ``None``: the end of input; return what to say to it."""
        word = None if line is None else line.strip().casefold()
        if word is None or word == CANCEL:
            self.response = {"action": "cancel"}
            return [Text("Cancelled: the server is told that you did not answer.", "yellow")]
        if word == DECLINE:
            self.response = {"action": "decline"}
            return [Text("Declined: the server is told that you said no.", "yellow")]
        assert line is not None
        return self._take(line)

    @abstractmethod
    def _explanation(self) -> Lines:
        """Return how to answer, and how not to."""

    @abstractmethod
    def _take(self, line: str) -> Lines:
        """Take a line that is neither a refusal nor the end."""

    def _take_yes_or_no(self, line: str) -> Lines:
        word = line.strip().casefold()
        if word in NO:
            return self.enter(DECLINE)
        if word not in YES:
            return [_problem(f"Type yes or no, or {CANCEL}.")]
        self.response = {"action": "accept"}
        return []


def conversation(request: Mapping[str, Any]) -> Conversation:
    """Return the conversation about an elicitation, which ``check_requests`` accepts from a peer."""
    if request["params"].get("mode") == "url":
        return _Visit(request)
    fields = form_fields(request)
    return _Form(request, fields) if fields else _Confirmation(request)


def headline(request: Mapping[str, Any]) -> str:
    """Return on one line what an input request wants. It may be anything."""
    proper = check_requests({"request": request}, from_peer=True) is None
    if proper and request["method"] == ELICITATION:
        return one_line(request["params"]["message"])
    return one_line(str(request.get("method")))


def details(request: Mapping[str, Any]) -> Iterator[str]:
    """Return what there is to know to answer an input request, line by line. It may be anything."""
    if check_requests({"request": request}, from_peer=True) or request["method"] != ELICITATION:
        yield from as_json(request).plain.splitlines()
    elif request["params"].get("mode") == "url":
        yield harmless(request["params"]["url"])
    else:
        for field in form_fields(request):
            choices = one_line(", ".join(option.value for option in field.options))
            mark = "required" if field.required else "optional"
            yield f"{one_line(field.name)}  {mark}  {f'of {choices}' if choices else field.wanted}"


def _problem(sentence: str) -> Text:
    return Text(sentence, "red")


def _hint(sentence: str) -> Text:
    return Text(sentence, "dim")


class _Confirmation(Conversation):
    """A form without fields: yes or no."""

    def prompt(self) -> tuple[Lines, str]:
        return [], "yes/no> "

    def _explanation(self) -> Lines:
        return [_hint(f"yes accepts, no or {DECLINE} declines; {CANCEL} or Ctrl-D leaves it unanswered.")]

    def _take(self, line: str) -> Lines:
        if not line.strip():
            return [_problem(f"Type yes or no, or {CANCEL}.")]
        said = self._take_yes_or_no(line)
        if self.response == {"action": "accept"}:
            self.response = {"action": "accept", "content": {}}
        return said


class _Visit(Conversation):
    """An address to go to: consent, and nothing else."""

    def prompt(self) -> tuple[Lines, str]:
        return [], "agree? yes/no> "

    def _explanation(self) -> Lines:
        url: str = self.request["params"]["url"]
        return [
            Text("It asks you to visit this address:"),
            _address(url),
            *(Text(f"Careful: {warning}.", "bold red") for warning in _warnings(url)),
            _hint("Nothing is opened for you: look at the address, and open it yourself if you trust it."),
            _hint(f"yes tells the server that you agree, no or {DECLINE} that you do not;"),
            _hint(f"{CANCEL} or Ctrl-D leaves it unanswered."),
        ]

    def _take(self, line: str) -> Lines:
        return self._take_yes_or_no(line)


def _host(url: str) -> tuple[str, bool]:
    """Return the host that an address leads to, and whether something with an @ stands before it."""
    try:
        parts = urlsplit(url)
        return parts.hostname or "", "@" in parts.netloc
    except ValueError:
        return "", False


def _address(url: str) -> Text:
    """Return the whole address, with its host standing out."""
    shown, (host, _) = harmless(url), _host(url)
    text = Text(f"  {shown}")
    authority = shown.find("//") + 2
    end = min((index for mark in "/?#" if (index := shown.find(mark, authority)) >= 0), default=len(shown))
    start = shown.casefold().rfind(host, authority, end) if host else -1
    if start >= 0:
        text.stylize("bold underline", start + 2, start + 2 + len(host))
    return text


def _warnings(url: str) -> Sequence[str]:
    (host, disguised), warnings = _host(url), []
    if not url.casefold().startswith("https://"):
        warnings.append("it is not an https address")
    if not host:
        warnings.append("it names no host")
    elif any(label.startswith("xn--") for label in host.split(".")):
        warnings.append(f"the host {host} is written in Punycode, and may look like another one in a browser")
    if disguised:
        warnings.append(f"what stands before the @ is not where it leads; that is {host}")
    return warnings


class _Form(Conversation):
    """A form, field by field; then all of it once more, to be sent or changed."""

    def __init__(self, request: Mapping[str, Any], fields: Sequence[Field]) -> None:
        super().__init__(request)
        self._fields = fields
        self._values: dict[str, Any] = {}
        self._at: int | None = 0
        """The field that is asked for; ``None``: all are filled in."""
        self._changing = False
        """Whether only this field is asked for again."""
        self._shown: int | None = -1
        """The field that stands on the screen."""

    def prompt(self) -> tuple[Lines, str]:
        shown, self._shown = self._shown == self._at, self._at
        if self._at is None:
            return [] if shown else self._overview(), "send> "
        field = self._fields[self._at]
        suggestion = self._suggestion(field)
        suggested = "" if suggestion is ABSENT else f" [{field.show(suggestion)}]"
        return [] if shown else self._about(field), f"{field.label}{suggested}> "

    def _explanation(self) -> Lines:
        return [_hint(f"At each prompt: {DECLINE} says no, {CANCEL} or Ctrl-D leaves it unanswered.")]

    def _take(self, line: str) -> Lines:
        if self._at is None:
            return self._take_decision(line.strip())
        field, word = self._fields[self._at], line.strip().casefold()
        if word == BACK:
            return self._go_back()
        if word == SKIP:
            return self._fill_in(field, ABSENT)
        try:
            return self._fill_in(field, field.read(line) if word else self._suggestion(field))
        except ValueError as error:
            return [_problem(str(error))]

    # -- one field -----------------------------------------------------------------------------------------

    def _about(self, field: Field) -> Lines:
        mark = Text("required", "yellow") if field.required else Text("optional", "dim")
        first = Text.assemble("\n", (field.label, "bold cyan"), "  ", mark, Text(f"  {field.wanted}", "dim"))
        lines = [first]
        if field.description:
            lines.append(Text(f"  {field.description}"))
        options = field.options
        for number, option in enumerate(options[:OPTIONS_SHOWN], start=1):
            value = "" if option.value == option.title else f"  {one_line(option.value)}"
            lines.append(Text.assemble(f"  {number}) {one_line(option.title)}", (value, "dim")))
        if len(options) > OPTIONS_SHOWN:
            lines.append(_hint(f"  … {len(options) - OPTIONS_SHOWN} more, up to number {len(options)}"))
        lines.append(_hint(f"  ({'; '.join(self._ways_out(field))})"))
        return lines

    def _ways_out(self, field: Field) -> Sequence[str]:
        ways = []
        suggestion = self._suggestion(field)
        if suggestion is not ABSENT:
            ways.append(f"Enter: {field.show(suggestion)}")
            if not field.required:
                ways.append(f"{SKIP} leaves it out")
        elif not field.required:
            ways.append("Enter leaves it out")
        if field.many and not field.problem([]):
            ways.append(f"{NOTHING_CHOSEN} chooses none")
        elif field.schema["type"] == "string" and not field.options and not field.problem(""):
            ways.append(f"{EMPTY_TEXT} is empty text")
        if self._at or self._changing:
            ways.append(BACK)
        return [*ways, DECLINE, CANCEL]

    def _suggestion(self, field: Field) -> Any:
        return self._values.get(field.name, field.default)

    def _go_back(self) -> Lines:
        if self._changing:
            self._at, self._changing = None, False
        elif self._at:
            self._at -= 1
        else:
            return [_problem("This is the first field.")]
        return []

    def _fill_in(self, field: Field, value: Any) -> Lines:
        if value is ABSENT and field.required:
            return [_problem(f"{field.label} is required.")]
        self._values[field.name] = value
        assert self._at is not None
        last = self._changing or self._at + 1 == len(self._fields)
        self._at = None if last else self._at + 1
        self._changing = False
        return []

    # -- all of them -----------------------------------------------------------------------------------------

    def _overview(self) -> Lines:
        lines = [Text("\nThis is what will be sent:", "bold")]
        for number, field in enumerate(self._fields, start=1):
            value = field.show(self._values[field.name])
            lines.append(Text.assemble(f"  {number}) {field.label}: ", (value, "bold")))
        numbers = "its number" if len(self._fields) == 1 else "a number"
        lines.append(_hint(f"  (Enter sends it; {numbers} changes that field; {DECLINE}; {CANCEL})"))
        return lines

    def _take_decision(self, text: str) -> Lines:
        if text.casefold() in {"", *YES}:
            return self._send()
        if text.casefold() == BACK:
            text = str(len(self._fields))
        for number, field in enumerate(self._fields, start=1):
            if text in {str(number), field.name, field.label}:
                self._at, self._changing = number - 1, True
                return []
        return [_problem("Press Enter to send it, or type the number of the field to change.")]

    def _send(self) -> Lines:
        content = {name: value for name, value in self._values.items() if value is not ABSENT}
        response = {"action": "accept", "content": content}
        if problem := check_response(self.request, response):
            return [_problem(f"It cannot be sent, the form does not allow it: {harmless(problem)}.")]
        self.response = response
        return []
