"""Agents of a home by OpenAI's own client: over HTTP, with a real daemon, real boxes and a scripted model."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import openai
import pytest

from agentos.daemon.control.tokens import TokenScope, add
from agentos.domain import Feedback, Json, Result, TaskState
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.testing import call, say
from agentos.testing.modelserver.replies import ServerReply
from agentos.web.api.chat import OPEN_MAX
from agentos.web.api.routes import OPEN_MAX as STREAMS_MAX
from tests.daemon.conftest import Daemon, made_home, until  # noqa: F401 - a fixture
from tests.daemon.thinking_world import KEY, KEY_ENV, results, scripted, turn_of, world
from tests.web.conftest import serving

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]


def said_to(request: Json) -> str:
    """What the model is told of the conversation."""
    return str(next(one for one in request["messages"] if one["role"] == "user")["content"])


def note(*_: str) -> Callable[[Json], ServerReply]:
    return lambda request: (
        say(f"noted {results(request)[0]}") if turn_of(request) else call("pure", {"text": "abc"})
    )


def recall(*_: str) -> Callable[[Json], ServerReply]:
    """Says back what it was told of the conversation."""
    return lambda request: say(said_to(request))


def ask(*_: str) -> Callable[[Json], ServerReply]:
    def reply(request: Json) -> ServerReply:
        if turn_of(request):
            return say(f"then {results(request)[0]} it is")
        return call("ask_person", {"question": "Which colour?", "choices": ["red", "blue"]})

    return reply


def circle(*_: str) -> Callable[[Json], ServerReply]:
    return lambda request: call("pure", {"text": "again"})


def slow(*_: str) -> Callable[[Json], ServerReply]:
    def reply(request: Json) -> ServerReply:
        time.sleep(0.3)
        return call("look", {"text": str(turn_of(request))})

    return reply


@dataclass
class Talk:
    home: Home
    reader: Reader
    address: str
    daemon: Daemon

    def client(self, *scopes: TokenScope, name: str) -> openai.OpenAI:
        token = add(self.home, name, scopes or (TokenScope.TALK,), 1, datetime.now(UTC))[1]
        return openai.OpenAI(base_url=f"{self.address}/v1", api_key=token, timeout=300)


@pytest.fixture(scope="module")
def talk(made_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:  # noqa: F811
    root = tmp_path_factory.mktemp("chat") / "home"
    shutil.copytree(made_home, root)
    home = Home(root)
    scripts = {"note": note, "recall": recall, "ask": ask, "circle": circle, "slow": slow}
    with (
        pytest.MonkeyPatch.context() as patch,
        world(home, scripted(scripts), settings='evolve = "manual"\n'),
        serving(home) as web,
    ):
        patch.setenv(KEY_ENV, KEY)
        daemon, reader = Daemon(home), Reader(home.ledger)
        yield Talk(home, reader, web.address, daemon.start())
        daemon.close()
        reader.close()


@pytest.fixture(scope="module")
def client(talk: Talk) -> Iterator[openai.OpenAI]:
    with talk.client(name="front-end") as made:
        yield made


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def test_agents_are_models(client: openai.OpenAI) -> None:
    assert {"default", "tester", "helper"} <= {model.id for model in client.models.list()}
    assert client.models.retrieve("tester").owned_by == "agentos"
    with pytest.raises(openai.NotFoundError) as error:
        client.chat.completions.create(model="gpt-4o", messages=[user("hi")])
    assert error.value.code == "not_found"


def test_a_question_is_a_task_whose_tools_run_in_a_box(talk: Talk, client: openai.OpenAI) -> None:
    done = client.chat.completions.create(model="tester", messages=[user("Do it. [note]")])
    (choice,) = done.choices
    assert (choice.message.role, choice.finish_reason) == ("assistant", "stop")
    assert "ABC" in str(choice.message.content)
    assert done.usage is not None
    assert done.usage.prompt_tokens > 0
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens
    about = done.model_extra["agentos"]  # type: ignore[index]
    run = talk.reader.run(about["run"])
    assert run.outcome is not None
    assert (run.outcome.result, run.sandbox) == (Result.PASSED, "bubblewrap")
    assert run.outcome.cost.tokens == done.usage.total_tokens
    task = talk.reader.task(about["task"])
    assert (task.agent, task.goal) == ("tester", "Do it. [note]")


def test_steps_come_while_it_works_and_then_the_answer(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="tester",
            messages=[user("[note] again")],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    steps = [
        delta.model_extra["reasoning_content"]
        for delta in deltas
        if "reasoning_content" in (delta.model_extra or {})
    ]
    assert any("pure" in step for step in steps)
    assert "ABC" in "".join(delta.content or "" for delta in deltas)
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens > 0
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"


def test_a_later_turn_knows_the_earlier_ones(talk: Talk, client: openai.OpenAI) -> None:
    messages: list[Any] = [
        {"role": "system", "content": "Be brief."},
        user("My dog is called Rex."),
        {"role": "assistant", "content": "Noted."},
        user("What is it called? [recall]"),
    ]
    done = client.chat.completions.create(model="tester", messages=messages)
    told = str(done.choices[0].message.content)
    for text in ("Be brief.", "Rex", "Noted.", "What is it called?"):
        assert text in told
    task = talk.reader.task(done.model_extra["agentos"]["task"])  # type: ignore[index]
    assert [file.path for file in task.inputs] == ["conversation.json"]


def test_a_run_that_asks_is_answered_by_the_next_turn_of_the_same_task(
    talk: Talk, client: openai.OpenAI
) -> None:
    messages: list[Any] = [user("Paint it. [ask]")]
    asked = client.chat.completions.create(model="tester", messages=messages)
    said = str(asked.choices[0].message.content)
    assert "Which colour?" in said
    task_id = asked.model_extra["agentos"]["task"]  # type: ignore[index]
    assert talk.reader.task_view(task_id).state is TaskState.WAITING
    messages += [{"role": "assistant", "content": f" {said}\n"}, user("2")]
    other = talk.client(name="other")
    with other:  # the same words with another's token are another conversation
        apart = other.chat.completions.create(model="tester", messages=messages)
    assert apart.model_extra["agentos"]["task"] != task_id  # type: ignore[index]
    assert talk.reader.task_view(task_id).state is TaskState.WAITING
    done = client.chat.completions.create(model="tester", messages=messages)
    assert done.model_extra["agentos"]["task"] == task_id  # type: ignore[index]
    assert "blue" in str(done.choices[0].message.content)
    assert done.id != asked.id


def test_responses_go_on_by_the_id_of_the_one_before(talk: Talk, client: openai.OpenAI) -> None:
    first = client.responses.create(model="tester", input="My cat is called Tom.")
    assert (first.status, first.output_text) == ("completed", "ok")
    assert first.usage is not None
    assert first.usage.total_tokens > 0
    second = client.responses.create(model="tester", input="Who? [recall]", previous_response_id=first.id)
    assert "Tom" in second.output_text
    asked = client.responses.create(model="tester", input="[ask]")
    assert "Which colour?" in asked.output_text
    answered = client.responses.create(model="tester", input="red", previous_response_id=asked.id)
    assert "red" in answered.output_text
    assert answered.id != asked.id
    with talk.client(name="stranger") as stranger, pytest.raises(openai.NotFoundError):
        stranger.responses.create(model="tester", input="[recall]", previous_response_id=first.id)


def test_a_response_is_read_again(talk: Talk, client: openai.OpenAI) -> None:
    asked = client.responses.create(model="tester", input="[ask] again")
    answered = client.responses.create(model="tester", input="blue", previous_response_id=asked.id)
    for one in (asked, answered):  # the question stays what it was, though the same task went on
        kept = client.responses.retrieve(one.id)
        assert (kept.id, kept.status, kept.model) == (one.id, "completed", "tester")
        assert kept.output_text == one.output_text
        assert kept.usage == one.usage
    for name in (answered.id[:-1] + "7", "resp_x", f"{asked.id}x", "resp_" + "9" * 30):
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(name)
    with talk.client(name="reader-of-others") as other, pytest.raises(openai.NotFoundError):
        other.responses.retrieve(asked.id)
    with pytest.raises(openai.BadRequestError, match="not honoured"):
        client.responses.retrieve(asked.id, include=["reasoning.encrypted_content"])
    with client.responses.create(model="tester", input="[slow] read while it goes on", stream=True) as events:
        begun = next(iter(events))
        assert client.responses.retrieve(begun.response.id).status == "in_progress"  # type: ignore[union-attr]


def test_responses_stream(client: openai.OpenAI) -> None:
    events = list(client.responses.create(model="tester", input="[note] streamed", stream=True))
    kinds = [event.type for event in events]
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert "response.reasoning_summary_text.delta" in kinds
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert "ABC" in text
    assert events[-1].response.output_text == text  # type: ignore[union-attr]
    assert [event.sequence_number for event in events] == list(range(len(events)))


def test_a_thumb_is_a_persons_word(talk: Talk, client: openai.OpenAI) -> None:
    done = client.chat.completions.create(model="tester", messages=[user("[note] for a thumb")])
    body = {"id": done.id, "rating": "bad", "because": "too short", "answer": "noted ABC, and why"}
    said = client.post("/feedback", cast_to=object, body=body)
    (*_, word) = talk.reader.find(Feedback, run_id=done.model_extra["agentos"]["run"])  # type: ignore[index]
    assert (word.because, word.principal.rpartition(",")[2]) == ("too short", "token=front-end")
    assert said["data"]  # type: ignore[index]
    with talk.client(name="someone") as other, pytest.raises(openai.NotFoundError):
        other.post("/feedback", cast_to=object, body=body)


def test_a_turn_that_comes_to_nothing_says_why_and_is_not_repeated(talk: Talk, client: openai.OpenAI) -> None:
    before = len(talk.reader.tasks())
    with pytest.raises(openai.UnprocessableEntityError) as error:
        client.chat.completions.create(model="tester", messages=[user("[circle]")])
    assert error.value.code == "failed"
    assert len(talk.reader.tasks()) == before + 1
    with pytest.raises(openai.APIError):
        list(client.chat.completions.create(model="tester", messages=[user("[circle] 2")], stream=True))


def test_who_hangs_up_ends_the_turn(talk: Talk, client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(model="tester", messages=[user("[slow]")], stream=True)
    first = next(stream)
    task_id = first.id.removeprefix("chatcmpl-").rpartition("-")[0]
    stream.close()
    until(lambda: talk.reader.task_view(task_id).state is TaskState.CANCELLED, "it is cancelled", 60)


def test_who_hangs_up_holds_up_nobody_else_while_the_ledger_is_written(
    talk: Talk, client: openai.OpenAI
) -> None:
    stream = client.chat.completions.create(model="tester", messages=[user("[slow]")], stream=True)
    task_id = next(stream).id.removeprefix("chatcmpl-").rpartition("-")[0]
    with closing(sqlite3.connect(talk.home.ledger, isolation_level=None, timeout=60)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        stream.close()
        for _ in range(200):  # the server finds that nobody listens any more while it answers these
            assert client.with_options(max_retries=0).models.list(timeout=15).data
        writer.execute("ROLLBACK")
    until(lambda: talk.reader.task_view(task_id).state is TaskState.CANCELLED, "it is cancelled", 60)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"temperature": 0.2}, "unsupported_parameter"),
        ({"n": 2}, "unsupported_parameter"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "unsupported_parameter"),
        ({"response_format": {"type": "json_object"}}, "unsupported_parameter"),
        ({"max_tokens": 5}, "unsupported_parameter"),
        ({"store": False}, "unsupported_parameter"),
        ({"messages": [{"role": "assistant", "content": "hi"}]}, "no_user_message"),
        ({"messages": [user([{"type": "image_url", "image_url": {"url": "x"}}])]}, "unsupported_parameter"),  # type: ignore[arg-type]
        ({"messages": [{"role": "tool", "tool_call_id": "1", "content": "x"}]}, "unsupported_parameter"),
        ({"messages": [user("x" * 100_000)]}, "context_length_exceeded"),
    ],
)
def test_what_is_not_honoured_is_refused(
    talk: Talk, client: openai.OpenAI, more: dict[str, Any], code: str
) -> None:
    before = len(talk.reader.tasks())
    asked: dict[str, Any] = {"model": "tester", "messages": [user("[note]")], **more}
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(**asked)
    assert error.value.code == code
    assert len(talk.reader.tasks()) == before


def test_harmless_parameters_are_taken(client: openai.OpenAI) -> None:
    parts: Any = [{"type": "text", "text": "[note]"}]
    done = client.chat.completions.create(
        model="tester", messages=[user(parts)], temperature=1, top_p=1, n=1, user="ada", metadata={"a": "b"}
    )
    assert done.choices


def test_errors_are_openais(talk: Talk) -> None:
    with openai.OpenAI(base_url=f"{talk.address}/v1", api_key="sk-no", max_retries=0) as nobody:
        with pytest.raises(openai.AuthenticationError) as error:
            nobody.models.list()
        assert error.value.code == "bad_token"
    with talk.client(TokenScope.LOOK, name="looker") as looker, pytest.raises(openai.PermissionDeniedError):
        looker.chat.completions.create(model="tester", messages=[user("[note]")])


def test_without_a_daemon_nothing_is_queued(talk: Talk, client: openai.OpenAI) -> None:
    talk.daemon.close()
    try:
        before = len(talk.reader.tasks())
        with pytest.raises(openai.InternalServerError) as error:
            client.chat.completions.create(model="tester", messages=[user("[note]")])
        assert error.value.status_code == 503
        assert json.dumps(error.value.body)
        assert len(talk.reader.tasks()) == before
    finally:
        talk.daemon.start()


def test_a_turn_goes_on_where_the_daemon_ended_meanwhile(talk: Talk, client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(model="tester", messages=[user("[slow] on")], stream=True)
    task_id = next(stream).id.removeprefix("chatcmpl-").rpartition("-")[0]
    until(lambda: bool(talk.reader.runs(task_id)), "it has begun", 60)
    talk.daemon.close()
    try:
        with pytest.raises(openai.APIError, match="goes on with the task"):
            list(stream)
        assert talk.reader.task_view(task_id).state is TaskState.RUNNING
    finally:
        talk.daemon.start()


@pytest.mark.parametrize(
    ("address", "body", "most"),
    [
        (
            "/v1/chat/completions",
            {"model": "tester", "messages": [user("[slow] at once")], "stream": True},
            OPEN_MAX,
        ),
        ("/api/v1/events?after=0", None, STREAMS_MAX),
    ],
)
def test_no_more_streams_than_there_are_places_also_where_they_come_at_once(
    talk: Talk, address: str, body: Any, most: int
) -> None:
    token = add(talk.home, f"many-{most}", (TokenScope.TALK, TokenScope.LOOK), 1, datetime.now(UTC))[1]
    content = json.dumps(body).encode() if body else b""
    head = f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    head = (
        f"{'POST' if body else 'GET'} {address} HTTP/1.1\r\nHost: {talk.address.partition('//')[2]}\r\n{head}"
    )
    asked = f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content
    place = ("127.0.0.1", int(talk.address.rpartition(":")[2]))

    def statuses(number: int) -> list[bytes]:
        with ExitStack() as stack:
            open_ = [stack.enter_context(socket.create_connection(place, 60)) for _ in range(number)]
            for connection in open_:
                connection.sendall(asked)
            return [connection.recv(12)[9:] for connection in open_]

    many = statuses(2 * most)
    assert (many.count(b"200"), many.count(b"429")) == (most, most)
    until(lambda: statuses(1) == [b"200"], "those that hung up have left their places", 60)
