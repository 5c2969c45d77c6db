"""Requester, proxies and server in a row: through any number of proxies a task is the same task (PRX).

Three engines that nobody adapted to each other, and a network that is never late. What the plan of a task
says is what its requester gets, be handles stored or sealed, views pushed or polled; and no id of one hop
is ever heard of beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto import (
    Effect,
    ExchangeClosed,
    HmacSealer,
    HttpHead,
    Input,
    MessageReceived,
    Reply,
    Send,
    StreamReady,
    TimePassed,
)
from mcp_tasks_proto.proxy import (
    HandleCodec,
    HandleKey,
    ProxyEffect,
    ProxyEngine,
    ProxyInput,
    ProxySettings,
    SealedHandles,
    SendUpstream,
    StopUpstream,
    StoredHandles,
    Upstream,
    UpstreamAnswered,
    UpstreamNotified,
)
from mcp_tasks_proto.requester import (
    AnswerGiven,
    Cancelled,
    Completed,
    HttpReply,
    NotificationReceived,
    Prompt,
    RequesterEffect,
    RequesterEngine,
    RequesterInput,
    RequesterSettings,
    ResponseReceived,
    SendRequest,
    StopRequest,
)
from mcp_tasks_proto.testing import ProxyHost, ProxyStore, RequesterHost, ServerHost
from mcp_tasks_proto.vocabulary import PROTOCOL_VERSION
from mcp_tasks_proto.wire.http import HeaderParameter, request_headers
from tests.model.test_pair import plans
from tests.model.workshop import ANSWER, START, Plan, Workshop, fits, make_pair, make_requester
from tests.unit.proxy_world import ToyAead

LONG_MS: Final = 3_600_000
CODECS: Final[dict[str, Callable[[], HandleCodec]]] = {
    "stored": StoredHandles,
    "sealed": lambda: SealedHandles([HandleKey("a", ToyAead(b"k"))]),
}


def make_proxy(codec: HandleCodec, hop: int, **more: Any) -> ProxyHost:
    engine = ProxyEngine(
        settings=ProxySettings(
            name="proxy",
            version="1",
            sealer=HmacSealer([b"p" * 32]),
            upstreams=(Upstream(name="next"),),
            **more,
        ),
        codec=codec,
        node="node",
    )
    return ProxyHost(engine=engine, store=ProxyStore(drawn=1000 * hop), now=START)


@define(eq=False, kw_only=True)
class Chain:
    """A requester, proxies, and a server, on one clock."""

    workshop: Workshop
    proxies: list[ProxyHost]
    requester: RequesterHost = field(factory=make_requester)
    server: ServerHost = field(init=False)
    now: int = START
    messages: list[list[Any]] = field(init=False)
    """All that came down from each hop: from the last proxy on the requester's side, to the server."""
    _agenda: list[tuple[int, int, Callable[[], None]]] = field(init=False, factory=list)
    _order: count[int] = field(init=False, factory=count)

    def __attrs_post_init__(self) -> None:
        self.server = make_pair(self.workshop).server
        self.messages = [[] for _ in range(len(self.proxies) + 1)]
        for proxy in self.proxies:
            proxy.give(TimePassed())

    # -- passing on ----------------------------------------------------------------------------------------

    def tell_requester(self, fact: RequesterInput) -> None:
        self.see_to(self.requester.give(fact))

    def see_to(self, effects: list[RequesterEffect]) -> None:
        for effect in effects:
            match effect:
                case SendRequest(request=name, message=message, parameters=parameters):
                    self.request(0, name, message, parameters)
                case StopRequest(request=name):
                    self.tell(0, ExchangeClosed((0, name)))
                case Prompt(call=call, key=key):
                    self.after(500, partial(self.answer, call, key))

    def answer(self, call: Hashable, key: str) -> None:
        if (call, key) in self.requester.on_show:
            self.tell_requester(AnswerGiven(call, key, ANSWER))

    def request(
        self, hop: int, name: int, message: dict[str, Any], parameters: tuple[HeaderParameter, ...]
    ) -> None:
        """Bring a request to a hop: a proxy, or after the last of them the server."""
        params = message["params"]
        version = params["_meta"][PROTOCOL_VERSION]
        sent = request_headers(message["method"], params, version, parameters)
        head = HttpHead(headers={header.lower(): value for header, value in sent})
        received = MessageReceived(exchange=(hop, name), message=message, http=head, principal=f"hop {hop}")
        self.tell(hop, received)

    def tell(self, hop: int, fact: Any) -> None:
        if hop < len(self.proxies):
            self.tell_proxy(hop, fact)
        else:
            self.tell_server(fact)

    def tell_proxy(self, hop: int, fact: ProxyInput) -> None:
        for effect in self.proxies[hop].give(fact):
            self.carry_out(hop, effect)

    def carry_out(self, hop: int, effect: ProxyEffect) -> None:
        match effect:
            case SendUpstream(request=name, message=message, parameters=parameters):
                self.request(hop + 1, name, message, parameters)
            case StopUpstream(request=name):
                self.tell(hop + 1, ExchangeClosed((hop + 1, name)))
            case Reply() | Send():
                self.down(hop, effect)

    def tell_server(self, fact: Input) -> None:
        hop = len(self.proxies)
        for effect in self.server.give(fact):
            if isinstance(effect, (Reply, Send)):
                self.down(hop, effect)
            else:
                self.work(effect)

    def work(self, effect: Effect) -> None:
        for delay_ms, outcome in self.workshop.work(effect):
            self.after(delay_ms, partial(self.tell_server, outcome))

    def down(self, hop: int, effect: Reply | Send) -> None:
        """Bring what a hop says to the one before it."""
        assert isinstance(effect.exchange, tuple)
        _, name = effect.exchange
        self.messages[hop].append(effect.message)
        if isinstance(effect, Send):
            if hop == 0:
                self.tell_requester(NotificationReceived(name, effect.message))
            else:
                self.tell_proxy(hop - 1, UpstreamNotified(name, effect.message))
            self.tell(hop, StreamReady(effect.exchange))
        elif hop == 0:
            http = HttpReply(status=effect.http_status)
            self.tell_requester(ResponseReceived(request=name, message=effect.message, http=http))
        else:
            self.tell_proxy(
                hop - 1,
                UpstreamAnswered(request=name, message=effect.message, http_status=effect.http_status),
            )

    # -- time ----------------------------------------------------------------------------------------------

    def after(self, delay_ms: int, act: Callable[[], None]) -> None:
        heappush(self._agenda, (self.now + delay_ms, next(self._order), act))

    def settle(self, call: Hashable, within_ms: int = LONG_MS) -> bool:
        """Let time pass until a call is over; return whether it is, within so much time."""
        until = self.now + within_ms
        while call not in self.requester.outcomes:
            deadlines = [self.requester.deadline, self.server.deadline]
            deadlines += [proxy.deadline for proxy in self.proxies]
            times = [deadline for deadline in deadlines if deadline is not None]
            times += [self._agenda[0][0]] if self._agenda else []
            if not times or min(times) > until:
                return False
            self.step(max(self.now, min(times)))
        return True

    def step(self, when: int) -> None:
        self.now = self.requester.now = self.server.now = when
        for proxy in self.proxies:
            proxy.now = when
        if self._agenda and self._agenda[0][0] <= when:
            return heappop(self._agenda)[2]()
        if self.requester.deadline is not None and self.requester.deadline <= when:
            return self.tell_requester(TimePassed())
        for hop, proxy in enumerate(self.proxies):
            if proxy.deadline is not None and proxy.deadline <= when:
                return self.tell_proxy(hop, TimePassed())
        return self.tell_server(TimePassed())

    def call(self) -> int:
        before = len(self.requester.effects)
        key = self.requester.call("render")
        self.see_to(self.requester.effects[before:])
        return key


def make_chain(plan: Plan, hops: int, codec: str, *, listen: bool, **more: Any) -> Chain:
    proxies = [make_proxy(CODECS[codec](), hop, **more) for hop in range(hops)]
    return Chain(workshop=Workshop(plan), proxies=proxies, requester=make_requester(listen=listen))


@settings(max_examples=60, deadline=None)
@given(plans, st.sampled_from([1, 2]), st.sampled_from(list(CODECS)), st.booleans())
def test_prx_through_any_number_of_proxies_every_task_ends_as_planned(
    plan: Plan, hops: int, codec: str, listen: bool
) -> None:
    chain = make_chain(plan, hops, codec, listen=listen)
    key = chain.call()
    assert chain.settle(key)
    assert fits(plan.end, chain.requester.outcomes[key])
    (answers,) = chain.workshop.answers.values()
    assert len(answers) == len(chain.requester.of(Prompt)) == chain.workshop.questions


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("listen", [False, True])
def test_prx8_no_id_of_one_hop_is_heard_of_beyond_it(codec: str, listen: bool) -> None:
    plan = Plan(steps=((90, "progress"), (90, "ask"), (90, "progress")))
    chain = make_chain(plan, 2, codec, listen=listen)
    assert chain.settle(chain.call())
    (task_id,) = chain.server.store.records
    assert task_id in str(chain.messages[2])
    assert task_id not in str(chain.messages[:2])
    handed = [message.get("result", {}).get("taskId") for message in chain.messages[1]]
    inner = next(handle for handle in handed if handle is not None)
    assert inner not in str(chain.messages[0])
    assert inner in str(chain.messages[1])


@pytest.mark.parametrize("codec", CODECS)
def test_prx11_a_cancel_goes_all_the_way(codec: str) -> None:
    chain = make_chain(Plan(last_ms=600_000), 2, codec, listen=True)
    key = chain.call()
    while key not in chain.requester.references:
        assert not chain.settle(key, within_ms=100)
        chain.now += 100
    chain.see_to(chain.requester.cancel(key, wait=True))
    assert chain.settle(key)
    assert isinstance(chain.requester.outcomes[key], Cancelled)
    assert list(chain.workshop.told.values()) == [1]


def test_prx17_a_caller_without_tasks_gets_the_result_of_one() -> None:
    """The server's tool can do with or without a task; here the server is asked for one by nobody."""
    chain = make_chain(Plan(), 2, "stored", listen=False, collapse=True)
    chain.requester = RequesterHost(
        engine=RequesterEngine(
            settings=RequesterSettings(name="test", version="1", endpoint="https://example.com", tasks=False)
        ),
        now=START,
    )
    key = chain.call()
    assert chain.settle(key)
    assert isinstance(chain.requester.outcomes[key], Completed)
    assert chain.server.store.records == {}
