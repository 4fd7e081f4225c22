"""The modules that a resource brings (its wheels, unpacked by the kernel): for its tools alone.

They come with the bundle. No installer is run and no ``.pth`` file obeyed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from agentos.messages import WHEELS

# The worker's own libraries, in use already: a second copy beside the first would not fit together.
_STAYS = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}


def provide(root: Path, path: str) -> None:
    """In a process of this tool's own: let its imports find what its resource brings first.

    Costs one look where that is nothing.
    """
    kind, name, _ = path.split("/", 2)
    place = f"{root}/{kind}/{name}/{WHEELS}"
    if place in sys.path or not os.path.isdir(place):
        return
    # What this process was forked with came from elsewhere, and may be another version.
    brought = {entry.partition(".")[0] for entry in os.listdir(place)} - _STAYS
    for module in [module for module in sys.modules if module.partition(".")[0] in brought]:
        del sys.modules[module]
    sys.path.insert(0, place)
    sys.dont_write_bytecode = False  # the next call in this box need not compile them again
