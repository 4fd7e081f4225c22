"""Notifier: one JSON document a line into the file that $EXAMPLE_NOTES names."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path


def tell(document: Mapping[str, str]) -> None:
    """Whatever is raised here means that nobody was told; it is tried again."""
    with Path(os.environ["EXAMPLE_NOTES"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(dict(document)) + "\n")
