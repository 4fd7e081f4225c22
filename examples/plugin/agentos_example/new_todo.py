"""Screen rule: no edit leaves work for later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_WORDS = ("TODO", "FIXME", "XXX")


class NewTodo:
    effect = "refuse"  # or "ask": a person looks at the edit

    @staticmethod
    def look(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
        """Path, line and sentence for each finding. ``new`` holds whole new texts."""
        for path, text in new.items():
            known = set(old.get(path, "").splitlines())
            for number, line in enumerate(text.splitlines(), 1):
                if line not in known and any(word in line for word in _WORDS):
                    yield path, number, "it leaves work for later"
