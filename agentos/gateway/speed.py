"""How quick a model is, by what its calls took: so that a time-out follows what the model needs.

Nothing is kept beside the record of calls. Its newest calls say what a token read and one written take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PATIENCE_S = 180.0  # for an answer of a model of which nothing is known
PATIENCE_MAX_S = 1800.0
KNOWN_S = 24 * 3600.0  # how old a call may be that still says something of a model's speed
FRESH_S = 3600.0  # and one by which another is not sent: the machine may have been busy
CALLS_MAX = 40
ANSWERS_MIN = 3
_ROOM = 1.5  # times what an answer of full length takes
_FAR = 2.0  # times what is left: nobody knows how long the answer will be
_SLOW_MAX = 2  # calls in a row without an answer in time; the next that has no more time is not sent


@dataclass(frozen=True, slots=True)
class CallTiming:
    """One call: tokens asked and answered, and how long it took. ``slow``: it had no answer by then."""

    input_tokens: int
    output_tokens: int
    seconds: float
    slow: bool = False


@dataclass(frozen=True, slots=True)
class ModelSpeed:
    """Of one model, by its newest calls, the newest first."""

    timings: Sequence[CallTiming]

    def patience_s(self, input_tokens: int, output_tokens: int) -> float:
        """How long to wait for an answer of at most so many tokens."""
        answered = self._answered()
        needed = 0.0
        if len(answered) >= ANSWERS_MIN:
            read_s, write_s = _per_token(answered)
            needed = _ROOM * (input_tokens * read_s + output_tokens * write_s)
        waited = max((each.seconds for each in self._slow()), default=0.0)
        return min(PATIENCE_MAX_S, max(PATIENCE_S, needed, 2 * waited))

    def hopeless(self, input_tokens: int, left_s: float) -> bool:
        """Whether so much cannot be answered in the time that is left.

        Where the last calls of at most as many tokens had no answer in at least that time, or the quickest
        answer to nearly as many took twice as long.
        """
        slow = [each for each in self._slow() if each.input_tokens <= input_tokens and each.seconds >= left_s]
        alike = [each for each in self._answered() if input_tokens / 2 <= each.input_tokens <= input_tokens]
        if len(slow) >= _SLOW_MAX:
            return True
        return len(alike) >= ANSWERS_MIN and min(each.seconds for each in alike) > _FAR * left_s

    def _answered(self) -> list[CallTiming]:
        return [each for each in self.timings if not each.slow and each.input_tokens + each.output_tokens > 0]

    def _slow(self) -> list[CallTiming]:
        """Those since the last answer: a model that was only being loaded answers the next time."""
        newest = next((place for place, each in enumerate(self.timings) if not each.slow), len(self.timings))
        return list(self.timings[:newest])


def _per_token(answered: Sequence[CallTiming]) -> tuple[float, float]:
    """Seconds for a token read and for one written, by least squares; neither is below zero."""
    reads = sum(each.input_tokens**2 for each in answered)
    writes = sum(each.output_tokens**2 for each in answered)
    both = sum(each.input_tokens * each.output_tokens for each in answered)
    by_read = sum(each.input_tokens * each.seconds for each in answered)
    by_write = sum(each.output_tokens * each.seconds for each in answered)
    apart = reads * writes - both**2
    if apart <= 1e-6 * reads * writes:  # they cannot be told apart
        each_s = sum(t.seconds for t in answered) / sum(t.input_tokens + t.output_tokens for t in answered)
        return each_s, each_s
    read_s = (by_read * writes - by_write * both) / apart
    write_s = (by_write * reads - by_read * both) / apart
    if read_s < 0:
        return 0.0, by_write / writes
    return (read_s, write_s) if write_s >= 0 else (by_read / reads, 0.0)
