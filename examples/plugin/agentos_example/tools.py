"""Page: which tools and skills runs used most of late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any


class Tools:
    title = "Tools by use"

    @staticmethod
    def show(reader: Any, query: Mapping[str, str]) -> Mapping[str, Any]:
        """Words and cells; the page escapes them."""
        runs = reader.runs(limit=500)
        used = Counter(name for run in runs for name in run.resources if name.startswith(("tool/", "skill/")))
        return {
            "lead": f"In the newest {len(runs)} runs.",
            "columns": ["resource", "runs"],
            "rows": used.most_common(50),
        }
