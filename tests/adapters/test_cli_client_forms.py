"""Forms and addresses as conversations: what is asked, what may be typed, and what is sent (INP, UPD.4)."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest
from mcp_tasks_adapters.cli.client.fields import ABSENT, Field
from mcp_tasks_adapters.cli.client.harmless import one_line
from mcp_tasks_adapters.cli.client.questions import Conversation, conversation, details, headline

from mcp_tasks_proto.input_requests import check_requests, check_response

COLOURS: Final = [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green, mostly"}]
FORM: Final = {
    "type": "object",
    "properties": {
        "channel": {"type": "string", "enum": ["public", "private"], "default": "private"},
        "count": {"type": "integer", "title": "How many", "minimum": 1, "maximum": 10},
        "note": {"type": "string", "description": "For the log"},
    },
    "required": ["channel", "count"],
}


def form(schema: dict[str, Any], message: str = "Publish?") -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def visit(url: str) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": "Pay.", "url": url}}


def field(**schema: Any) -> Field:
    return Field(name="it", schema=schema, required=True)


class Talk:
    """A conversation, and all that it showed."""

    def __init__(self, request: dict[str, Any]) -> None:
        assert check_requests({"key": request}, from_peer=True) is None
        self.request = request
        self.conversation: Conversation = conversation(request)
        self.shown = [line.plain for line in self.conversation.opening()]

    def type(self, *lines: str | None) -> Talk:
        for line in lines:
            assert self.conversation.response is None, "it was answered already"
            about, label = self.conversation.prompt()
            self.shown += [*(text.plain for text in about), label]
            self.shown += [text.plain for text in self.conversation.enter(line)]
        return self

    @property
    def response(self) -> Any:
        response = self.conversation.response
        assert response is None or check_response(self.request, response) is None
        return response

    @property
    def text(self) -> str:
        return "\n".join(self.shown)


# -- one field -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        ({"type": "string"}, "  two words ", "  two words "),
        ({"type": "string"}, '""', ""),
        ({"type": "string"}, "/etc/hosts", "/etc/hosts"),
        ({"type": "string", "format": "email"}, "ann@example.com", "ann@example.com"),
        ({"type": "integer"}, "007", 7),
        ({"type": "integer"}, " -3 ", -3),
        ({"type": "number"}, "12345678901234567890", 12345678901234567890),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "boolean"}, "Y", True),
        ({"type": "boolean"}, "no", False),
        ({"type": "string", "enum": ["loud", "soft"]}, "2", "soft"),
        ({"type": "string", "enum": ["loud", "soft"]}, "LOUD", "loud"),
        ({"type": "string", "enum": ["10", "2", "1"]}, "1", "1"),
        ({"type": "string", "enum": ["10", "20", "30"]}, "3", "30"),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["Ay"]}, "ay", "a"),
        ({"type": "string", "oneOf": COLOURS}, "red", "#f00"),
        ({"type": "string", "oneOf": COLOURS}, "#0f0", "#0f0"),
        ({"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}}, "1, c,1", ["a", "c"]),
        ({"type": "array", "items": {"anyOf": COLOURS}}, "Green, mostly", ["#0f0"]),
        ({"type": "array", "items": {"anyOf": COLOURS}}, "1,2", ["#f00", "#0f0"]),
        ({"type": "array", "items": {"anyOf": COLOURS}}, "-", []),
    ],
)
def test_reads_what_a_person_types(schema: dict[str, Any], typed: str, value: Any) -> None:
    read = field(**schema).read(typed)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("schema", "typed", "complaint"),
    [
        ({"type": "integer"}, "2.5", "'2.5' is not a whole number."),
        ({"type": "integer"}, "9" * 5000, "That number has too many digits."),
        ({"type": "number"}, "nan", "'nan' is not a number."),
        ({"type": "number"}, "1_0", "'1_0' is not a number."),
        ({"type": "number"}, "1e999", "That number is out of range."),
        ({"type": "boolean"}, "perhaps", "Type yes or no."),
        ({"type": "string", "enum": ["a", "b"]}, "3", "'3' is not among the choices."),
        ({"type": "array", "items": {"enum": ["a", "b"], "type": "string"}}, "a, x", "'x' is not among"),
        ({"type": "integer", "minimum": 1, "maximum": 10}, "11", "it must be from 1 to 10."),
        ({"type": "integer", "minimum": 1}, "0", "it must be at least 1."),
        ({"type": "string", "maxLength": 3}, "four", "it must be at most 3 characters."),
        ({"type": "string", "minLength": 2, "maxLength": 3}, "f", "it must be 2 to 3 characters."),
        ({"type": "string", "minLength": 2, "maxLength": 2}, "f", "it must be exactly 2 characters."),
        ({"type": "string", "format": "email"}, "ann", "it must be an email address."),
        (
            {"type": "array", "minItems": 2, "items": {"anyOf": COLOURS}},
            "1",
            "it must be at least 2 choices.",
        ),
    ],
)
def test_says_what_is_wrong_with_it(schema: dict[str, Any], typed: str, complaint: str) -> None:
    """UPD.4: what the server would refuse is never sent."""
    with pytest.raises(ValueError, match=re.escape(complaint)):
        field(**schema).read(typed)


@pytest.mark.parametrize(
    ("schema", "default"),
    [
        ({"type": "string", "default": "x"}, "x"),
        ({"type": "boolean", "default": False}, False),
        ({"type": "integer", "default": "7"}, ABSENT),
        ({"type": "string", "enum": ["a"], "default": "b"}, ABSENT),
        ({"type": "string"}, ABSENT),
    ],
)
def test_suggests_only_a_default_that_the_form_allows(schema: dict[str, Any], default: Any) -> None:
    assert field(**schema).default == default


# -- forms -----------------------------------------------------------------------------------------------


def test_asks_field_by_field_and_sends_what_was_looked_over() -> None:
    talk = Talk(form(FORM)).type("1", "3", "nothing special", "")
    assert talk.response == {
        "action": "accept",
        "content": {"channel": "public", "count": 3, "note": "nothing special"},
    }


def test_shows_types_choices_defaults_and_what_is_required() -> None:
    talk = Talk(form(FORM)).type("", "3", "", "look")
    for shown in [
        "channel  required  a number or a name",
        "1) public",
        "Enter: private",
        "channel [private]> ",
        "How many (count)  required  a whole number, from 1 to 10",
        "note  optional  text",
        "For the log",
        "Enter leaves it out",
        "3) note: (left out)",
    ]:
        assert shown in talk.text
    assert talk.response is None, "nothing is sent before it was looked over"


def test_leaves_out_what_was_left_out() -> None:
    assert Talk(form(FORM)).type("", "3", "", "").response["content"] == {"channel": "private", "count": 3}


def test_asks_again_for_what_does_not_fit() -> None:
    talk = Talk(form(FORM)).type("", "0", "many", "10", "", "")
    assert "from 1 to 10" in talk.text
    assert "'many' is not a whole number." in talk.text
    assert talk.response["content"]["count"] == 10


def test_a_required_field_cannot_be_left_out() -> None:
    talk = Talk(form(FORM)).type("", "", "/skip")
    assert talk.shown.count("How many (count) is required.") == 2
    assert talk.response is None


def test_an_optional_default_can_be_left_out() -> None:
    schema = {"type": "object", "properties": {"loud": {"type": "boolean", "default": True}}}
    assert Talk(form(schema)).type("", "").response["content"] == {"loud": True}
    assert Talk(form(schema)).type("/skip", "").response["content"] == {}


def test_goes_back_to_the_last_field() -> None:
    talk = Talk(form(FORM)).type("/back", "public", "3", "/back", "/back", "", "4", "", "")
    assert "This is the first field." in talk.text
    assert "channel [public]> " in talk.shown, "what was typed before is the suggestion now"
    assert talk.response["content"] == {"channel": "public", "count": 4}


def test_changes_a_field_before_it_is_sent() -> None:
    talk = Talk(form(FORM)).type(
        "", "3", "", "what?", "2", "5", "How many (count)", "/back", "/back", "hi", "yes"
    )
    assert "type the number of the field to change" in talk.text
    assert talk.response["content"] == {"channel": "private", "count": 5, "note": "hi"}


def test_asks_for_less_only_where_that_helps() -> None:
    """What stands right above is not shown again when a line is not taken."""
    talk = Talk(form(FORM)).type("", "0", "0")
    assert talk.text.count("How many (count)  required") == 1
    assert talk.text.count("How many (count)> ") == 2


@pytest.mark.parametrize("typed", [[], ["public"], ["public", "3", ""], ["public", "3", "", "2"]])
@pytest.mark.parametrize(
    ("line", "action"),
    [("/decline", "decline"), ("/cancel", "cancel"), ("/DECLINE ", "decline"), (None, "cancel")],
)
def test_can_be_declined_and_cancelled_at_every_prompt(
    typed: list[str], line: str | None, action: str
) -> None:
    talk = Talk(form(FORM)).type(*typed, line)
    assert talk.response == {"action": action}
    assert "/decline" in talk.text
    assert "/cancel" in talk.text


def test_a_form_that_cannot_be_filled_in_is_not_sent() -> None:
    schema = {"type": "object", "properties": {}, "required": ["absent"]}
    schema["properties"] = {"here": {"type": "boolean"}}
    talk = Talk(form(schema)).type("yes", "")
    assert "It cannot be sent, the form does not allow it: answer.content lacks 'absent'." in talk.text
    assert talk.type("/decline").response == {"action": "decline"}


def test_a_form_without_fields_needs_a_yes() -> None:
    question = form({"type": "object", "properties": {}})
    assert Talk(question).type("", "sure").response is None, "neither Enter nor anything else accepts"
    assert Talk(question).type("y").response == {"action": "accept", "content": {}}
    assert Talk(question).type("no").response == {"action": "decline"}
    assert Talk(question).type(None).response == {"action": "cancel"}


def test_the_servers_words_do_nothing_to_the_terminal() -> None:
    talk = Talk(form(FORM, message="Really?\x1b[2J\nSecond line\u202e"))
    assert talk.shown[:2] == ["Really?\\u001b[2J", "Second line\\u202e"]


# -- addresses ---------------------------------------------------------------------------------------------


def test_a_choice_keeps_to_its_line_and_most_of_very_many_are_left_out() -> None:
    """LIM.3: a server offers what it likes."""
    many = [f"choice {number}" for number in range(100_000)]
    choices = {"type": "string", "enum": ["a\n  2) b", *many]}
    talk = conversation(form({"type": "object", "properties": {"one": choices}}))
    lines, _ = talk.prompt()
    shown = "\n".join(line.plain for line in lines)
    assert "  1) a 2) b\n  2) choice 0\n" in shown
    assert "… 99901 more, up to number 100001" in shown
    assert len(lines) < 110
    talk.enter("choice 99999")
    talk.enter("")
    assert talk.response == {"action": "accept", "content": {"one": "choice 99999"}}


def test_an_address_is_shown_whole_and_needs_a_yes() -> None:
    """Core, "Elicitation": the whole URL, its host standing out, and consent; nothing is opened."""
    url = "https://pay.example/cart?id=7#pay.example"
    talk = Talk(visit(url))
    assert f"  {url}" in talk.shown
    [address] = [line for line in talk.conversation.opening() if line.plain == f"  {url}"]
    [span] = address.spans
    assert address.plain[span.start : span.end] == "pay.example"
    assert span.start == len("  https://")
    assert "Nothing is opened for you" in talk.text
    assert "Careful" not in talk.text
    assert talk.type("", "maybe").response is None
    assert talk.type("yes").response == {"action": "accept"}
    assert Talk(visit(url)).type("no").response == {"action": "decline"}
    assert Talk(visit(url)).type("/cancel").response == {"action": "cancel"}


@pytest.mark.parametrize(
    ("url", "warning"),
    [
        ("http://pay.example/", "it is not an https address"),
        ("https://xn--pypal-4ve.example/", "is written in Punycode"),
        (
            "https://paypal.example@evil.example/",
            "what stands before the @ is not where it leads; that is evil.example",
        ),
        ("mailto:ann@example.com", "it names no host"),
    ],
)
def test_warns_of_an_address_that_is_not_what_it_seems(url: str, warning: str) -> None:
    assert warning in Talk(visit(url)).text


# -- in brief ------------------------------------------------------------------------------------------------


def test_a_question_in_brief() -> None:
    question = form(FORM, message="Publish\n it?\x1b")
    assert headline(question) == "Publish it?\\u001b"
    assert list(details(question)) == [
        "channel  required  of public, private",
        "count  required  a whole number, from 1 to 10",
        "note  optional  text",
    ]
    assert list(details(visit("https://pay.example/"))) == ["https://pay.example/"]


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"method": 7, "params": []},
        {"method": "elicitation/create", "params": [1]},
        {"method": "elicitation/create", "params": {"message": "x", "requestedSchema": {"properties": 7}}},
        {"method": "roots/list"},
        {
            "method": "sampling/createMessage",
            "params": {"messages": [], "maxTokens": 1, "url": 7, "requestedSchema": 7},
        },
    ],
)
def test_any_question_can_be_shown_in_brief(request_: dict[str, Any]) -> None:
    """A peer cannot raise."""
    assert headline(request_) == one_line(str(request_.get("method")))
    assert json.loads("".join(details(request_))) == request_
