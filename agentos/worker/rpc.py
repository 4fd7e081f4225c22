"""The worker's end of the conversation while a run is under way: steps out, asks out, answers in.

Many threads may ask at once. Whoever waits and finds nobody reading reads for all, so that no
thread is needed for it.
"""

from __future__ import annotations

import threading
from typing import Any, Literal

from pydantic import BaseModel

from agentos.messages import Answer, Ask, WireFault
from agentos.wire import Channel, FrameError
from agentos.worker.faults import fault

What = Literal["model", "tool", "recall", "remember", "skills", "person", "delegate", "fetch"]


class Refused(Exception):
    """The kernel did not give what was asked for; ``fault`` says why."""

    def __init__(self, fault: WireFault) -> None:
        self.fault = fault
        super().__init__(f"{fault.type}: {fault.message}")


class KernelClient:
    """Sends frames and asks over the one channel. Safe from many threads."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._sending = threading.Lock()
        self._changed = threading.Condition()
        self._answers: dict[int, Answer] = {}
        self._next = 0
        self._reading = False

    def send(self, message: BaseModel, blobs: tuple[bytes, ...] = ()) -> None:
        """Send one frame that is not answered."""
        with self._sending:
            self._channel.send(message.model_dump(), blobs)

    def ask(self, what: What, body: dict[str, Any]) -> dict[str, Any]:
        """Ask and wait for the answer, as ``messages.Ask`` says. Raises Refused."""
        with self._changed:
            number, self._next = self._next, self._next + 1
        try:
            self.send(Ask(id=number, what=what, body=body))
        except FrameError as error:  # nothing of it was sent
            raise Refused(fault("request", f"it cannot be sent: {error}")) from None
        answer = self._wait(number)
        if answer.fault is not None:
            raise Refused(answer.fault)
        return answer.body

    def _wait(self, number: int) -> Answer:
        while True:
            with self._changed:
                while number not in self._answers and self._reading:
                    self._changed.wait()
                if number in self._answers:
                    return self._answers.pop(number)
                self._reading = True
            answer = None
            try:
                answer = Answer.model_validate(self._channel.receive().head)
            finally:
                self._hand_over(answer)

    def _hand_over(self, answer: Answer | None) -> None:
        with self._changed:
            if answer is not None:
                self._answers[answer.id] = answer
            self._reading = False
            self._changed.notify_all()
