"""Short texts in little room: deflate (RFC 1951) that begins with what records of the ledger have in common.

A record of 500 to 700 characters is nearly all names of fields, of which nothing is left: it takes a quarter of its
room, where plain zlib saves a third. Stored rows can be read with the very same dictionary only, so ``_WORDS`` never
changes (a test holds it to its digest); a better one would be a second, told by another first byte.
"""

from __future__ import annotations

import zlib

FIRST = b"\x01"  # of what is packed here; what zlib packs by itself begins with "x"

_WORDS = (
    b'{"id":"feedback-","because":"","principal":"person:","ends":"","title":"","text":"","channel":"","event":"",'
    b'"destination":"","file":"","attempts":0,"due_at":null,"command_began":null,"choices":[],"asked_at":"",'
    b'"answered_at":null,"answer":null,"model":"","opinion":"","screened":"","control":null,"removes":false,'
    b'"parents":[],"migration":null,"rebase":null,"edited":[],"behaviour":null,"weight":0.0,"not_reproducible'
    b"cannot_fix no_improvement circuit_broken rolled_back cancelled rejected held stale wrong_answer missing_file "
    b"KeyError ValueError TypeError IndexError AttributeError ZeroDivisionError Traceback exception harness environment "
    b'memory prompt agent {"ok":true,"output":{"lines":1,"words":,"bytes":}}{"ok":false,"error":"{"type":"","where":'
    b'"","message":""}{"tool":"","args":{"path":"text":"name":"},"path":"tool//tool.py"}{"goal":"{"goto":"call"}null'
    b'{"id":"probe-","snapshot":{"commit":"","tree":""},"driving_sha256":"","passed":true,"reason":"","at":"2026-'
    b'+00:00","evolution_id":"","passes":[],"canaries":[],"seconds":0.0}'
    b'{"run_id":"run-","task_id":"task-","task_key":"","fingerprint":{"id":"","resource":"skill/","klass":"wrong_answer",'
    b'"signature":"tool//tool.py | check | tool//tool.py | "},"seen_at":"2026-+00:00","flagged":false,"signals":[],'
    b'"hidden":false}{"id":"evd-","fingerprint":{"id":"","resource":"tool/","klass":"wrong_answer","signature":"},'
    b'"run_ids":["run-","run-"],"task_ids":["task-","task-"],"sealed_at":"2026-+00:00","sha256":""}'
    b'{"id":"att-","evolution_id":"evo-","predicted_fixes":["task-","task-"],"observed_fixes":["task-","task-"],'
    b'"predicted_risks":[],"observed_regressions":[],"verdict":"effective","when":"probation"}"when":"promotion"}'
    b'{"id":"consent-","evolution_id":"evo-","candidate_id":"cand-","candidate_tree":"","manifest_sha256":"",'
    b'"verdict_sha256":"","principal":"policy:medium=auto","expires_at":"2026-+00:00","token":"","given":"standing"}'
    b'{"id":"verdict-","evolution_id":"evo-","candidate_id":"cand--1","decision":"promote","reasons":["2 of 2 failing '
    b'evidence tasks pass with it, in every trial","none of 3 guards broke","the hold-out did not fall (0 \\u2192 0 of 0 '
    b'pass)"],"fixed":["task-","task-"],"broken":[],"flaky":[],"candidate_tree":"","base_tree":"","manifest_sha256":"",'
    b'"trials_sha256":"","policy_sha256":""}{"id":"cand--1","evolution_id":"evo-","proposer":"repair","rank":1,'
    b'"manifest":{"evidence_id":"evd-","cause":"","edit":"","files":["tool//tool.py"],"predicted_fixes":["task-",'
    b'"task-"],"tasks_at_risk":[],"layer":"skill","why_this_layer":""},"edit":{"files":{"tool//tool.py":""},"summary":'
    b'"","operator":""},"base":{"commit":"","tree":""},"snapshot":{"commit":"","tree":""},"screened":"","created_at":'
    b'{"id":"evo-","evidence_id":"evd-","fingerprint_id":"","state":"promoted","base":{"commit":"","tree":""},"reason":'
    b'"3 live runs stood the test","diagnosis":{"layer":"skill","resource":"tool/","path":"tool//tool.py","why":"the '
    b"answer is not what the checks expect; every failing run executed tool//tool.py and nothing else that may evolve "
    b'(2 tasks)","step_refs":[],"also":[]},"candidate_id":"cand--1","promoted":{"commit":"","tree":""},"created_at":'
    b'"2026-+00:00","ended_at":"2026-+00:00","asked":[{"proposer":"repair","layer":"tool","seconds":0.0,"cpu_s":0.0,'
    b'"usd":0.0,"search":null}],"held_back":[],"given":[],"ending":"stood","waiting":"","waits_until":null,"takes_up":'
    b'"","undone_at":null}{"id":"trial-","evolution_id":"evo-","candidate_id":"cand--1","task_id":"task-","set":"guard",'
    b'"arm":"candidate","repeat":1,"snapshot":{"commit":"","tree":""},"outcome":{"result":"failed","score":0.0,'
    b'"reason":"failed","fault":{"type":"","where":"","message":"","exception":""},"checks":[{"kind":"equals",'
    b'"passed":false,"detail":""}],"cost":{"wall_s":0.0,"cpu_s":0.0,"tokens":0,"usd":0.0,"calls":0,"live_calls":0}},'
    b'"answer_sha256":"","sandbox":"bubblewrap","level":"namespace","run_id":"trial-","recording":"","drift":[],'
    b'"steps_sha256":"","number":0,"alike":false,"image":"","renamed":true,"bundle":"","reached":["tool//tool.py:'
    b'"],"look":1,"taken_from":""}{"id":"task-","name":"","goal":"","call":{"tool":"","args":{"path":""}},"inputs":'
    b'[{"path":"","sha256":"","size":}],"agent":"default","limits":{"steps":50,"wall_s":120.0,"memory_mb":512,'
    b'"output_bytes":1048576,"workspace_mb":64,"processes":64,"cost_usd":0.0,"tokens":0,"calls":0},"effects":["read"],'
    b'"checks":[{"kind":"equals","spec":{"value":"path":"}}],"schedule":null,"created_at":"2026-+00:00","secrets":[],'
    b'"parent":"","sources":[],"trigger":null,"deliver":[],"schedule_id":""}{"id":"run-","task_id":"task-","task_key":"",'
    b'"share":"open","attempt":1,"snapshot":{"commit":"","tree":""},"sandbox":"bubblewrap","level":"namespace",'
    b'"started_at":"2026-+00:00","finished_at":"2026-+00:00","outcome":{"result":"passed","score":1.0,"reason":"",'
    b'"fault":null,"checks":[{"kind":"equals","passed":true,"detail":""}],"cost":{"wall_s":0.,"cpu_s":0.0,"tokens":0,'
    b'"usd":0.0,"calls":0,"live_calls":0}},"answer":null,"outputs":[],"resources":["agent/default","harness/default",'
    b'"tool/"],"parent":"","resumes":"","regrades":""}'
)
# The window holds the dictionary and what follows it. Made once, and with small tables: a copy costs 4 us, with
# those of zlib's default 44 us, and what comes out is as short.
_EMPTY = zlib.compressobj(9, zlib.DEFLATED, -14, 6, zlib.Z_DEFAULT_STRATEGY, _WORDS)


def squeezed(data: bytes) -> bytes:
    """``data`` in less room, to be read by ``spread``."""
    packing = _EMPTY.copy()
    return FIRST + packing.compress(data) + packing.flush()


def spread(data: bytes) -> bytes:
    """What ``squeezed``, or zlib alone, was given; raises zlib.error when it is damaged."""
    if data[:1] != FIRST:
        return zlib.decompress(data)
    unpacking = zlib.decompressobj(-zlib.MAX_WBITS, _WORDS)
    found = unpacking.decompress(data[1:])
    if not unpacking.eof:
        raise zlib.error("it ends too early")
    return found
