"""Frames over pipes: what a hostile end may send costs no more memory, time or descriptors than was agreed."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agentos.wire import WEIGHT_MAX, Channel, FrameError, WireClosed, WireLate, hangs_up, weigh
from tests.refusals import raises

Ends = tuple[Channel, Channel]


@pytest.fixture(params=["pipes", "socket"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    if request.param == "socket":
        one, other = (Channel(sock, blobs_max=1) for sock in socket.socketpair())
    else:
        to, fro = os.pipe(), os.pipe()
        one, other = Channel((to[0], fro[1]), blobs_max=1), Channel((fro[0], to[1]))
    yield one, other
    one.close()
    other.close()


def soon() -> float:
    return time.monotonic() + 20


def frame(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


def say(channel: Channel, data: bytes) -> None:
    """Raw bytes, from a thread: a pipe holds little."""

    def write() -> None:
        left = data
        while left:
            left = left[channel._writing.move(lambda to, left=left: os.write(to, left), None) :]

    threading.Thread(target=write, daemon=True).start()


def test_what_is_sent_arrives_whole(ends: Ends) -> None:
    one, other = ends
    blob = os.urandom(3 << 20)
    sender = threading.Thread(target=other.send, args=({"a": "é" * 100_000}, (blob,)))
    sender.start()
    found = one.receive(deadline=soon())
    sender.join()
    assert (found.head, found.blobs) == ({"a": "é" * 100_000}, (blob,))
    assert found.weight >= found.size > 100_000


def test_many_parts_of_a_frame_arrive_in_their_order(ends: Ends) -> None:
    one, other = ends
    one.bound(64 << 20, 1_000)
    blobs = tuple(os.urandom(0 if number % 7 == 0 else number * 5) for number in range(400))
    sender = threading.Thread(target=other.send, args=({"files": 400}, blobs))
    sender.start()
    found = one.receive(deadline=soon())
    sender.join()
    assert (found.head, found.blobs) == ({"files": 400}, blobs)


@pytest.mark.parametrize("by_whom", ["peer", "another thread"])
def test_a_reader_is_freed_when_either_end_is_closed(ends: Ends, by_whom: str) -> None:
    one, other = ends
    closing = threading.Timer(0.05, (other if by_whom == "peer" else one).close)
    closing.start()
    with pytest.raises(WireClosed):
        one.receive(deadline=soon())
    closing.join()
    with pytest.raises(WireClosed):
        one.receive(deadline=soon())


def test_a_writer_that_nobody_reads_is_late_and_can_be_closed(ends: Ends) -> None:
    one, _ = ends
    with pytest.raises(WireLate):
        one.send({}, (bytes(8 << 20),), deadline=time.monotonic() + 0.1)
    threading.Timer(0.05, one.close).start()
    with pytest.raises(WireClosed):
        one.send({}, (bytes(8 << 20),), deadline=soon())


def test_bytes_that_come_one_by_one_do_not_move_the_deadline(ends: Ends) -> None:
    one, other = ends
    over = threading.Event()

    def drip() -> None:
        other._writing.move(lambda to: os.write(to, struct.pack(">I", 1000)), None)
        while not over.wait(0.02):
            other._writing.move(lambda to: os.write(to, b" "), None)

    thread = threading.Thread(target=drip)
    thread.start()
    with pytest.raises(WireLate):
        one.receive(deadline=time.monotonic() + 0.3)
    over.set()
    thread.join()


@pytest.mark.parametrize(
    "text",
    [
        b'{"blobs": [' + b"0," * 3_900_000 + b"0]}",
        b'{"blobs": [' + b"0," * 100 + b"0]}",
        b'{"a": [' + b"[]," * 2_500_000 + b"0]}",
        b'{"a": [' + b'"",' * 2_500_000 + b"0]}",
        b'{"a": [' + b'{"a":0},' * 900_000 + b"0]}",
    ],
    ids=["millions of blobs", "a hundred blobs", "lists", "strings", "dictionaries"],
)
def test_a_header_that_would_fill_the_memory_is_refused_before_it_is_read(ends: Ends, text: bytes) -> None:
    one, other = ends
    say(other, frame(text))
    spent = time.thread_time()
    with pytest.raises(FrameError):
        one.receive(deadline=soon())
    assert time.thread_time() - spent < 1


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",  # a header of four gigabytes
        frame(b"[]"),
        frame(b"\x80\x04cos\nsystem\n."),  # a pickle
        frame(b"[" * 400_000),
        frame(b"\xff\xff"),
        frame(b'{"blobs": ['),
        frame(b'{"blobs": [99999999999]}'),
        frame(b'{"blobs": [-10]}'),
    ],
    ids=range(8),
)
def test_what_is_no_frame_is_an_error(ends: Ends, data: bytes) -> None:
    one, other = ends
    say(other, data)
    with pytest.raises(FrameError):
        one.receive(deadline=soon())


def held(value: Any) -> int:
    """Bytes that the value holds, with what the collector keeps beside each container."""
    size = sys.getsizeof(value) + (16 if isinstance(value, list | dict) else 0)
    if isinstance(value, dict):
        return size + sum(held(key) + held(inner) for key, inner in value.items())
    return size + sum(map(held, value)) if isinstance(value, list) else size


def test_the_weight_is_about_what_a_value_holds() -> None:
    values: list[Any] = [
        [[] for _ in range(4_000)],
        [{} for _ in range(4_000)],
        [{"a": [number], "b": "text"} for number in range(2_000)],
        [number + 0.5 for number in range(10_000)],
        [str(number) for number in range(10_000)],
        {str(number): None for number in range(10_000)},
        'quotes " and \\ and commas, [brackets] {}' * 4_000,
    ]
    for value in values:
        text = json.dumps(value).encode()
        assert held(value) <= weigh(text) * 1.1, text[:40]
        assert weigh(text) <= 8 * held(value), text[:40]


def test_a_long_text_full_of_signs_is_no_heavier_than_it_is_long() -> None:
    text = json.dumps({"a": "1,2,[3],{4}\n" * 300_000}).encode()
    assert weigh(text) < 1.1 * len(text) + 1000 < WEIGHT_MAX


def test_the_other_end_hangs_up_when_its_last_holder_lets_go() -> None:
    reader, writer = os.pipe()
    again = os.dup(writer)
    os.write(writer, b"said before")
    os.close(writer)
    assert not hangs_up(reader, 0.05)
    os.close(again)
    assert hangs_up(reader, 5)
    os.close(reader)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_json_does_not_have_is_refused(number: str) -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    data = f'{{"answer": [{number}]}}'.encode()
    theirs.sendall(struct.pack(">I", len(data)) + data)
    with raises(FrameError, names=[number]):
        channel.receive()
    channel.close()
    theirs.close()


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), json.loads("[" * 300 + "]" * 300), ([],) * 3 + (1e999,)]
)
def test_what_would_be_refused_there_is_not_sent(value: object) -> None:
    ours, theirs = map(Channel, socket.socketpair())
    with pytest.raises(FrameError):
        theirs.send({"x": value})
    theirs.send({"x": [[]] * 300})
    assert len(ours.receive().head["x"]) == 300
    ours.close()
    theirs.close()


def test_floats_come_as_they_were_sent() -> None:
    ours, theirs = map(Channel, socket.socketpair())
    theirs.send({"x": [0.1, 1e308, -2.5e-7]})
    assert ours.receive().head == {"x": [0.1, 1e308, -2.5e-7]}
    ours.close()
    theirs.close()
