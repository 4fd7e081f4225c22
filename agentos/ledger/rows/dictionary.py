"""Short texts in little room: deflate (RFC 1951) that begins with what records of the ledger have in common.

A record of 500 to 700 characters is nearly all names of fields, of which nothing is left. What is left is digests: of
a text in ASCII they are taken out before, stand behind the rest as bytes, and one that was there before is only
pointed at. Stored rows can be read with the very same dictionary only, so ``_WORDS`` and ``_NEWER_WORDS`` never
change (a test holds them to their digests); a better one would be a third, told by another first byte.
"""

from __future__ import annotations

import re
import zlib

FIRST = b"\x01"  # of what is packed with ``_WORDS``; what zlib packs by itself begins with "x"
SECOND = b"\x02"  # of what is packed with ``_NEWER_WORDS``, its digests apart

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
# Where a digest in quotes was stands \x80 and the number of its bytes; where one was that came before, how many digests
# ago (``_NEAR``, ``_FAR``).
_NEWER_WORDS = (
    _WORDS[: _WORDS.index(b'{"id":"probe-')]
    + b'{"id":"probe-","snapshot":{"commit":"\x80\x14","tree":"\x80\x14"},"driving_sha256":"\x80\x20","passed":true,"reason":"","at":'
    b'"2026-+00:00","evolution_id":"","passes":[],"canaries":[],"seconds":0.0}'
    b'{"run_id":"run-","task_id":"task-","task_key":"\x80\x20","fingerprint":{"id":"\x80\x08","resource":"skill/","klass":'
    b'"wrong_answer","signature":"skill//tools/.py | check | skill//tools/.py | "},"seen_at":"2026-+00:00","flagged":'
    b'false,"signals":[],"hidden":false}{"id":"evd-","fingerprint":{"id":"\x80\x08","resource":"tool/","klass":"'
    b'wrong_answer","signature":"tool//tool.py | check | tool//tool.py | "},"run_ids":["run-","run-"],"task_ids":["task-",'
    b'"task-"],"sealed_at":"2026-+00:00","sha256":"\x80\x20"}'
    b'{"id":"cand--1","evolution_id":"evo-","proposer":"repair","rank":1,"manifest":{"evidence_id":"evd-","cause":"",'
    b'"edit":"","files":["skill//tools/.py"],"predicted_fixes":["task-","task-"],"tasks_at_risk":[],"layer":"skill",'
    b'"why_this_layer":""},"edit":{"files":{"skill//tools/.py":"import json\\nfrom \\n\\n\\ndef (input):\\n    \\"\\"\\" \\"'
    b'\\"\\"\\n    if :\\n        return \\n    for in :\\n            return {\\"\\": }\\n"},"summary":"","operator":""},"base":{'
    b'"commit":"\x80\x14","tree":"\x80\x14"},"snapshot":{"commit":"\x80\x14","tree":"\x80\x14"},"screened":"","created_at":"2026-+00:00",'
    b'"control":null,"removes":false,"parents":[],"migration":null,"model":"","rebase":null,"edited":[{"name":"skill/'
    b'/tools/.py::","shown_by":["skill//tools/.py::"],"new_file":false}],"behaviour":null,"weight":0.0,"plugin":"",'
    b'"prior":0.0,"known_tasks":}'
    b'{"id":"trial-","evolution_id":"evo-","candidate_id":"cand--1","task_id":"task-","set":"evidence","arm":"base",'
    b'"repeat":0,"snapshot":{"commit":"\x80\x14","tree":"\x80\x14"},"outcome":{"result":"failed","score":0.0,"reason":"",'
    b'"fault":null,"checks":[{"kind":"equals","passed":false,"detail":"","plugin":""}],"cost":{"wall_s":0.0,"cpu_s":0.0,'
    b'"tokens":0,"usd":0.0,"calls":0,"live_calls":0}},"answer_sha256":"\x80\x20","sandbox":"bubblewrap","level":"namespace",'
    b'"run_id":"trial-","recording":"","drift":[],"steps_sha256":"\x80\x20","number":0,"alike":false,"image":"","renamed":'
    b'true,"bundle":"\x80\x14","reached":["skill//tools/.py::"],"look":0,"taken_from":"","plugins":[],"host":"","work":"\x80\x20"}'
    b'{"id":"task-","name":"","goal":"","call":{"tool":"/","args":{"path":""}},"inputs":[{"path":"","sha256":"\x80\x20",'
    b'"size":}],"agent":"default","limits":{"steps":50,"wall_s":60.0,"memory_mb":512,"output_bytes":1048576,'
    b'"workspace_mb":64,"processes":64,"cost_usd":0.0,"tokens":0,"calls":0},"effects":["read"],"checks":[{"kind":"equals",'
    b'"spec":{"value":"path":"}}],"schedule":null,"created_at":"2026-+00:00","secrets":[],"parent":"","sources":[],'
    b'"trigger":null,"deliver":[],"schedule_id":""}'
    b'{"id":"run-","task_id":"task-","task_key":"\x80\x20","share":"open","attempt":1,"snapshot":{"commit":"\x80\x14","tree":"\x80\x14'
    b'"},"sandbox":"bubblewrap","level":"namespace","started_at":"2026-+00:00","finished_at":"2026-+00:00","outcome":{'
    b'"result":"passed","score":1.0,"reason":"","fault":null,"checks":[{"kind":"equals","passed":true,"detail":"",'
    b'"plugin":""}],"cost":{"wall_s":0.,"cpu_s":0.0,"tokens":0,"usd":0.0,"calls":0,"live_calls":0}},"answer":null,'
    b'"outputs":[],"resources":["agent/default","harness/default","skill/"],"parent":"","resumes":"","host":"",'
    b'"regrades":""}'
    b'{"id":"consent-","evolution_id":"evo-","candidate_id":"cand--1","candidate_tree":"\x80\x14","manifest_sha256":"\x80\x20",'
    b'"verdict_sha256":"\x80\x20","principal":"policy:medium=auto","expires_at":"2026-+00:00","token":"\x80\x20","given":'
    b'"standing"}{"id":"verdict--1","evolution_id":"evo-","candidate_id":"cand--1","decision":"promote","reasons":["2 of '
    b'2 failing evidence tasks pass with it, in every trial","none of 5 guards broke","the hold-out did not fall (0 '
    b'\\u2192 0 of 0 pass)"],"fixed":["task-","task-"],"broken":[],"flaky":[],"candidate_tree":"\x80\x14","base_tree":"\x80\x14",'
    b'"manifest_sha256":"\x80\x20","trials_sha256":"\x80\x20","policy_sha256":"\x80\x20","kinds":["fixed","guards_kept",'
    b'"hold_out_kept"]}'
    b'{"id":"evo-","evidence_id":"evd-","fingerprint_id":"\x80\x08","state":"promoted","base":{"commit":"\x80\x14","tree":"\x80\x14"},'
    b'"reason":"3 live runs stood the test","diagnosis":{"layer":"skill","resource":"skill/","path":"skill//tools/.py",'
    b'"why":"the answer is not what the checks expect; every failing run executed skill//tools/.py and nothing else '
    b'that may evolve, after 2 promotions of skill/ for such: the fault lies deeper, in harness/default (2 tasks)",'
    b'"step_refs":[],"also":[{"layer":"harness","resource":"harness/default","path":"harness/default/harness.py"}]},'
    b'"candidate_id":"cand--1","promoted":{"commit":"\x80\x14","tree":"\x80\x14"},"created_at":"2026-+00:00","ended_at":'
    b'"2026-+00:00","asked":[{"proposer":"repair","layer":"skill","seconds":0.,"cpu_s":0.,"usd":0.0,"search":null}],'
    b'"held_back":[],"given":[],"ending":"stood","waiting":"","waits_until":null,"takes_up":"","undone_at":null,"began":'
    b'{"reproducing":"2026-+00:00","proposing":"2026-+00:00","replaying":"2026-+00:00","promoting":"2026-+00:00"}}'
    b'{"id":"att--replay","evolution_id":"evo-","predicted_fixes":["task-","task-"],"observed_fixes":["task-","task-"],'
    b'"predicted_risks":[],"observed_regressions":[],"verdict":"effective","when":"probation"}"when":"promotion"}'
    b'{"reason": "promoted, on probation", "records": {"evolution/evo-{"reason": "of guards and hold-out tasks with checks, '
    b'1 pass with it and ran what it edits, and with fewer than 3 (min_tasks) nobody can tell what it breaks"}'
    b'{"evolution": "evo-", "records": {"evidence/evd-": "\x80\x20"}, "sha256": "\x80\x20"}{"candidate": "cand--1", "decision": '
    b'"promote", "records": {"verdict/verdict--1": "\x80\x20"}}{"consent": "consent-", "given": "standing", "principal": '
    b'"policy:medium=auto", "records": {"consent/consent-": "\x80\x20"}}'
    b'{"reason": "3 live runs stood the test", "records": {"evolution/evo-": "\x80\x20"}, "sets": {"attestation": [2, "\x80\x20"], '
    b'"candidate": [1, "\x80\x20"], "trial": [36, "\x80\x20"]}}{"records": {"run/run-": "\x80\x20"}, "result": "passed", "task": "task-"}'
)
_DIGEST = re.compile(rb'"([0-9a-f]{16,64})(?=")')
_MARK = b"\x80"  # in no text in ASCII, and never behind itself
# one byte more tells 1 to 63; two 64 and more; so many and no more
_NEAR, _FAR, _FARTHEST = (0x28, 0x7F, 64 + 0x7F)
# The window holds the dictionary and what follows it. Made once, and with small tables: a copy costs 4 us, with
# those of zlib's default 44 us, and what comes out is as short.
_EMPTY = zlib.compressobj(9, zlib.DEFLATED, -14, 6, zlib.Z_DEFAULT_STRATEGY, _NEWER_WORDS)
_EMPTY_OLD = zlib.compressobj(9, zlib.DEFLATED, -14, 6, zlib.Z_DEFAULT_STRATEGY, _WORDS)


def squeezed(data: bytes) -> bytes:
    """``data`` in less room, to be read by ``spread``."""
    if not data.isascii():
        packing = _EMPTY_OLD.copy()
        return FIRST + packing.compress(data) + packing.flush()
    text, digests = _apart(data)
    packing = _EMPTY.copy()
    return SECOND + packing.compress(text) + packing.flush() + digests


def spread(data: bytes) -> bytes:
    """What ``squeezed``, or zlib alone, was given; raises zlib.error when it is damaged."""
    if data[:1] not in (FIRST, SECOND):
        return zlib.decompress(data)
    unpacking = zlib.decompressobj(-zlib.MAX_WBITS, _WORDS if data[:1] == FIRST else _NEWER_WORDS)
    found = unpacking.decompress(data[1:])
    if not unpacking.eof:
        raise zlib.error("it ends too early")
    return found if data[:1] == FIRST else _together(found, unpacking.unused_data)


def _apart(data: bytes) -> tuple[bytes, bytes]:
    """A text in ASCII without its digests, and these as bytes."""
    digests: list[bytes] = []
    places: dict[bytes, int] = {}
    count = 0

    def mark(found: re.Match[bytes]) -> bytes:
        nonlocal count
        word = found[1]
        if len(word) % 2:
            return found[0]
        ago = count - places.get(word, -_FARTHEST - 1)
        places[word] = count
        count += 1
        if ago < 64:
            return bytes((0x22, 0x80, _NEAR + ago))
        if ago <= _FARTHEST:
            return bytes((0x22, 0x80, _FAR, ago - 64))
        digests.append(bytes.fromhex(word.decode()))
        return bytes((0x22, 0x80, len(word) // 2))

    return _DIGEST.sub(mark, data), b"".join(digests)


def _together(text: bytes, digests: bytes) -> bytes:
    """What ``_apart`` was given; raises zlib.error when some is missing."""
    first, *rest = text.split(_MARK)
    whole, words, at = [first], list[bytes](), 0
    try:
        for part in rest:
            code, behind = part[0], 1
            if code < _NEAR:
                word = digests[at : at + code].hex().encode()
                at += code
            elif code < _FAR:
                word = words[_NEAR - code]
            else:
                word, behind = words[-64 - part[1]], 2
            words.append(word)
            whole += word, part[behind:]
    except IndexError:
        raise zlib.error("its digests are damaged") from None
    if at != len(digests):
        raise zlib.error("its digests are not whole")
    return b"".join(whole)
