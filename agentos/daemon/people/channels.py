"""The ways on which a person is told: a command, mail, a webhook, the desktop. Each raises Undelivered."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import smtplib
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from agentos.domain import Notification
from agentos.errors import AgentOSError, Unavailable, UserError
from agentos.home import Home
from agentos.models.secrets import value_of
from agentos.plugins import registry
from agentos.settings import Notify

PATIENCE_S = 20.0
_WHOLE_S = 3 * PATIENCE_S  # of a whole conversation
_LONGEST_PAUSE_S = 4 * 3600.0  # that a webhook may ask for: as long as our own pauses become
_SAID = 4_000  # bytes of what a command printed that are looked at
Send = Callable[[Notification], None]


class ChannelFailed(Unavailable):
    """Nobody was told, as far as is known; another try may do it, ``after_s`` seconds later at the earliest."""

    def __init__(self, why: str, after_s: float = 0.0) -> None:
        super().__init__(why)
        self.after_s = after_s


def channels_of(home: Home, wanted: Notify) -> Mapping[str, Send]:
    """By name, those that the settings name."""
    found: dict[str, Send] = {}
    if wanted.command:
        found["command"] = partial(_by_command, wanted.command)
    if wanted.mail_to:
        found["mail"] = partial(_in_time, partial(_by_mail, home, wanted))
    if wanted.webhook:
        found["webhook"] = partial(_in_time, partial(_by_webhook, wanted.webhook))
    if wanted.desktop:
        found["desktop"] = _on_the_desktop
    return found | {name: partial(_by_plugin, name) for name in wanted.plugins}


def document(note: Notification) -> Mapping[str, str]:
    """What a command gets on standard input and a webhook as its body; equal ids are one message."""
    return {
        "id": note.id,
        "event": note.event,
        "subject": note.subject,
        "title": note.title,
        "text": note.text,
        "at": note.at.isoformat(),
    }


def _in_time(send: Send, note: Notification) -> None:
    """A timeout of a socket is for one read: a server that answers letter by letter would hold up every other message."""

    def attempt() -> ChannelFailed | None:
        try:
            send(note)
        except ChannelFailed as error:
            return error
        return None

    failed, why = registry.within(_WHOLE_S, attempt)
    if failed or why:
        raise failed or ChannelFailed(why)


def _by_command(words: list[str], note: Notification) -> None:
    _run(words, json.dumps(document(note)), {"AGENTOS_EVENT": note.event, "AGENTOS_TITLE": note.title})


def _by_plugin(name: str, note: Notification) -> None:
    try:
        tell = registry.load(registry.named("notifiers", name))
    except UserError as error:
        raise ChannelFailed(str(error)) from None
    _, why = registry.within(PATIENCE_S, lambda: tell(document(note)))
    if why:
        raise ChannelFailed(f"the plug-in {name}: {why}")


def _on_the_desktop(note: Notification) -> None:
    _run(["notify-send", "--app-name=agentos", "--", note.title, note.text], "", {})


def _run(words: list[str], given: str, more: Mapping[str, str]) -> None:
    try:
        _ended_well(words, given, more)
    except OSError as error:  # a full disk: the message is kept, and tried again
        raise ChannelFailed(
            f"{words[0]!r} cannot be given what it needs: {error.strerror or error}"
        ) from None


def _ended_well(words: list[str], given: str, more: Mapping[str, str]) -> None:
    # files, not pipes: what a command leaves running would hold these open, and us with them
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as said:
        asked.write(given.encode())
        asked.seek(0)
        try:
            child = subprocess.Popen(
                words,
                stdin=asked,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env={**os.environ, **more},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # a null byte within a word
            why = getattr(error, "strerror", None) or error
            raise ChannelFailed(f"{words[0]!r} cannot be started: {why}") from None
        try:
            child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise ChannelFailed(f"{words[0]} did not end within {PATIENCE_S:g} s") from None
        if child.returncode:
            said.seek(0)
            first = said.read(_SAID).decode("utf-8", "replace").strip().splitlines()[:1]
            raise ChannelFailed(
                f"{words[0]} ended with status {child.returncode}{': ' if first else ''}{''.join(first)[:200]}"
            )


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """What is told is for the URL that a person named."""


def _by_webhook(url: str, note: Notification) -> None:
    headers = {"Content-Type": "application/json", "User-Agent": "agentos", "Idempotency-Key": note.id}
    request = urllib.request.Request(url, json.dumps(document(note)).encode(), headers, method="POST")  # noqa: S310 - settings allow http and https only
    try:
        # its status says all: a body that comes letter by letter would hold up every other message
        urllib.request.build_opener(_NoRedirects()).open(request, timeout=PATIENCE_S).close()
    except urllib.error.HTTPError as error:
        with error:
            after_s = _asked_pause_s(error.headers.get("Retry-After", ""))
            raise ChannelFailed(f"the webhook answers {error.code}", after_s) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ChannelFailed(f"the webhook cannot be reached: {getattr(error, 'reason', error)}") from None


def _asked_pause_s(header: str) -> float:
    """What a Retry-After asks for, in seconds or as a date; 0 where it cannot be read, and at most four hours."""
    try:
        asked = (
            float(header)
            if header.strip().isdigit()
            else parsedate_to_datetime(header).timestamp() - time.time()
        )
    except (ValueError, OverflowError):
        return 0.0
    return min(max(asked, 0.0), _LONGEST_PAUSE_S)


def _by_mail(home: Home, wanted: Notify, note: Notification) -> None:
    mail = EmailMessage()
    mail["To"], mail["From"] = wanted.mail_to, wanted.mail_from or wanted.mail_to
    mail["Subject"] = f"[agentos] {note.title}"
    mail["Message-ID"] = f"<{note.id}@agentos.invalid>"
    mail["Date"] = note.at
    mail.set_content(f"{note.text}\n")
    if not wanted.smtp:
        program = shutil.which("sendmail") or "/usr/sbin/sendmail"
        _run([program, "-t", "-oi"], mail.as_string(), {})
        return
    host, _, port = wanted.smtp.rpartition(":")
    try:
        password = value_of(home, wanted.smtp_secret) if wanted.smtp_secret else ""
        with _server(wanted.smtp_security, host, int(port)) as server:
            if wanted.smtp_user:
                server.login(wanted.smtp_user, password)
            server.send_message(mail)
    except (OSError, smtplib.SMTPException, UnicodeError) as error:  # smtplib logs in by ASCII alone
        raise ChannelFailed(
            f"the mail server {wanted.smtp} refuses or is away: {type(error).__name__}"
        ) from None
    except ChannelFailed:
        raise
    except AgentOSError as error:
        raise ChannelFailed(str(error)) from None


def _server(security: str, host: str, port: int) -> smtplib.SMTP:
    if security == "tls":
        return smtplib.SMTP_SSL(host, port, timeout=PATIENCE_S, context=ssl.create_default_context())
    server = smtplib.SMTP(host, port, timeout=PATIENCE_S)
    try:
        if security == "starttls":  # never without it: a password would be read on the way
            server.starttls(context=ssl.create_default_context())
    except (OSError, smtplib.SMTPException):
        server.close()
        raise
    return server
