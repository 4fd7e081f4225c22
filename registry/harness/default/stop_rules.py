"""When a run has to end, beside the model's own answer: nearly spent, in circles, or calls that make no sense."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from history import Exchange
from text_calls import FLAGS

from agentos.worker.sdk import WireFault, fault

STEPS_KEPT = 6  # for the last thought, its check and the end
REPEATS = 3  # of a pattern of exchanges, results included
PERIODS = (1, 2, 3)
NONSENSE_MAX = 3  # replies in a row of which no call could be made
TEXT_NONSENSE_MAX = 2  # where they were written as text

LAST_WORD = (
    "Your budget for this task is nearly spent ({why}), and there are no more tools. Give your final answer "
    "now, with what you have; say what is missing."
)


class Spending:
    """What the run has left of model calls and tokens; 0 means that there is no such limit."""

    def __init__(self, calls_max: int, tokens_max: int) -> None:
        self._calls_max = calls_max
        self._tokens_max = tokens_max
        self.calls = 0
        self.tokens = self._last = 0  # the next call will take at least what the last one took

    def add(self, body: Mapping[str, Any]) -> None:
        """Count one reply."""
        usage = body.get("usage") or {}
        self.calls += 1
        self._last = int(usage.get("total_tokens") or 0)
        self.tokens += self._last

    def add_unusable(self) -> None:
        """Count a call that was made and gave nothing; it took about what the one before took."""
        self.calls += 1
        self.tokens += self._last

    @property
    def left(self) -> int:
        """Tokens that may still be used; 0 where there is no limit."""
        return max(1, self._tokens_max - self.tokens) if self._tokens_max else 0

    @property
    def can_spare(self) -> bool:
        """Whether a call beside the thoughts leaves one for the next thought and one for the last."""
        calls = not self._calls_max or self.calls + 3 <= self._calls_max
        return calls and (not self._tokens_max or self.tokens + 3 * self._last < self._tokens_max)

    def nearly_spent(self, steps_left: int) -> str:
        """Why the next thought has to be the last, "" while it need not."""
        if steps_left <= STEPS_KEPT:
            return f"{steps_left} steps are left"
        if self._calls_max and self.calls + 1 >= self._calls_max:
            return f"one model call of {self._calls_max} is left"
        if self._tokens_max and self.tokens + 2 * self._last >= self._tokens_max:
            return f"{self.tokens} of {self._tokens_max} tokens are used"
        return ""


class Circles:
    """Finds exchanges that repeat: the same calls with the same results, in a pattern of up to three."""

    def __init__(self) -> None:
        self._prints: list[str] = []
        self._told = False

    def on(self, exchange: Exchange) -> str:
        """ "" while there is none; ``tell`` the first time; ``stop`` when it goes on regardless."""
        self._prints.append(_print(exchange))
        if not any(_repeats(self._prints, period) for period in PERIODS):
            return ""
        self._prints.clear()
        if self._told:
            return "stop"
        self._told = True
        return "tell"


class Nonsense:
    """Counts replies in a row of which no call could be made."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def on(self, exchange: Exchange) -> WireFault | None:
        """The fault that ends the run, or None."""
        wrong = [asked for asked in exchange.asked if asked.wrong]
        self._in_a_row = self._in_a_row + 1 if len(wrong) == len(exchange.asked) else 0
        if self._in_a_row < (TEXT_NONSENSE_MAX if exchange.as_text else NONSENSE_MAX):
            return None
        why = f"{self._in_a_row} replies in a row asked for calls that cannot be made: {wrong[-1].wrong}"
        why += f"; {FLAGS}" if exchange.as_text else ""
        unknown = wrong[-1].wrong.startswith("there is no tool")
        return fault("unknown_tool" if unknown else "bad_arguments", why)


def loop_fault(exchange: Exchange) -> WireFault:
    """The fault of a run that went on in circles."""
    names = ", ".join(dict.fromkeys(asked.name for asked in exchange.asked))
    return fault("loop", f"the same calls ({names}) gave the same results again and again")


def _print(exchange: Exchange) -> str:
    calls = [
        [asked.name, asked.args, seen.ok, seen.whole]
        for asked, seen in zip(exchange.asked, exchange.seen, strict=True)
    ]
    return hashlib.sha256(json.dumps(calls, sort_keys=True).encode()).hexdigest()


def _repeats(prints: Sequence[str], period: int) -> bool:
    length = period * REPEATS
    return len(prints) >= length and list(prints[-length:]) == list(prints[-period:]) * REPEATS
