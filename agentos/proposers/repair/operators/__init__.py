"""The edit operators by family: each takes a site and yields the edits it can make there."""
