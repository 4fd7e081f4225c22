"""The vocabulary as types: what a task, a run, an evolution and their parts are.

Every record is a frozen, slotted dataclass and holds only plain data (text, numbers, aware UTC
datetimes, tuples, other records, and JSON values), so that a record can be stored, hashed,
compared and sent anywhere. docs/understand/concepts.md explains the words to a user; this package is what
they mean to the code.
"""
