"""Rules that the kernel holds over a run while it is under way: documents, predicates, what they see, who acts.

Pure but for the predicate language, which lives in ``predicate`` alone. ``daemon/requests/enforcement`` enforces
what is decided here. docs/use/rules.md is for people who write rules.
"""
