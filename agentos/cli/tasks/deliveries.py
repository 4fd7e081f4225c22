"""What became of results that were to be delivered, in a line each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from agentos.cli.output import print_text
from agentos.domain import Delivery, DeliveryState
from agentos.ledger.reading import Reader

_LATELY = timedelta(days=7)
_SHOWN = 20


def undelivered_lately(reader: Reader) -> Sequence[Delivery]:
    """What failed once and is tried again; and, newest first, what was given up in the last days and not delivered since."""
    since = datetime.now(UTC) - _LATELY
    found = [one for one in reader.find(Delivery, state=DeliveryState.PENDING.value) if one.reason]
    for one in reader.newest(Delivery, _SHOWN, state=DeliveryState.FAILED.value):
        same = [other for other in reader.find(Delivery, run_id=one.run_id) if other.file == one.file]
        again = [other for other in same if other.destination == one.destination][-1]
        if again.id == one.id and one.ended_at is not None and one.ended_at > since:
            found.append(one)
    return found


def tell_delivery(delivery: Delivery) -> None:
    """Show it, and what to type where it failed."""
    what = delivery.file or "the answer"
    place = delivery.path or " ".join(delivery.destination.command) or delivery.destination.folder
    if delivery.state is DeliveryState.DONE:
        at = f", {delivery.ended_at.astimezone():%Y-%m-%d %H:%M}" if delivery.ended_at else ""
        said = f": {delivery.reason}" if delivery.reason else ""
        print_text(f"delivered  {what} to {place} ({delivery.sha256[:12]}{at}){said}", "green")
    elif delivery.state is DeliveryState.PENDING:
        why = f", not yet: {delivery.reason}" if delivery.reason else ", soon"
        print_text(f"delivers   {what} to {place}{why}", "yellow")
    else:
        again = f"  (`agentos run deliver {delivery.run_id}`)" if delivery.sha256 else ""
        print_text(f"undelivered {what} to {place}: {delivery.reason}{again}", "red")
