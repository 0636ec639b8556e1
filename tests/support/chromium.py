"""A real browser without a window, told what to do over a pipe: no port, no profile, no network."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["CHROMIUM", "Browser", "Page", "browser"]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
"""Where it is, if it is."""

_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--disable-extensions", "--remote-debugging-pipe",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip
_PATIENCE = 60.0


class Browser:
    """What speaks the DevTools protocol, one JSON text after the other, each ended by a zero."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader, self._writer = reader, writer
        self._taken = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []
        """All that it told unasked, in order."""

    def ask(self, method: str, session: str | None = None, **values: object) -> dict[str, Any]:
        self._number += 1
        order = {"id": self._number, "method": method, "params": values}
        if session is not None:
            order["sessionId"] = session
        os.write(self._writer, json.dumps(order).encode() + b"\0")
        until = time.monotonic() + _PATIENCE
        while True:
            told = self._next(until)
            if told.get("id") == self._number:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']['message']}")
                result: dict[str, Any] = told["result"]
                return result
            self.events.append(told)

    def wait_for(self, method: str) -> None:
        """Until it has told so; an event that is there already counts."""
        until = time.monotonic() + _PATIENCE
        while all(event.get("method") != method for event in self.events):
            self.events.append(self._next(until))

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._taken:
            ready, _, _ = select.select([self._reader], [], [], max(0.0, until - time.monotonic()))
            read = os.read(self._reader, 1 << 16) if ready else b""
            if not read:
                raise RuntimeError("the browser is gone" if ready else "the browser says nothing")
            self._taken += read
        text, self._taken = self._taken.split(b"\0", 1)
        told: dict[str, Any] = json.loads(text)
        return told

    def show(self, file: Path, width: int, *, media: str = "", scheme: str = "light") -> Page:
        """The page as a window of that width has it; `media` is `print` for paper."""
        self.events.clear()
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        page = Page(self, attached["sessionId"])
        for domain in ("Page", "Network", "Runtime", "Log"):
            page.ask(f"{domain}.enable")
        page.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        page.ask("Emulation.setEmulatedMedia", media=media, features=features)
        page.ask("Page.navigate", url=file.as_uri())
        self.wait_for("Page.loadEventFired")
        return page


class Page:
    def __init__(self, owner: Browser, session: str) -> None:
        self._owner, self._session = owner, session

    def ask(self, method: str, **values: object) -> dict[str, Any]:
        return self._owner.ask(method, self._session, **values)

    def value(self, expression: str) -> Any:
        """What the expression is, in the page."""
        told = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in told:
            raise RuntimeError(told["exceptionDetails"]["text"])
        return told["result"].get("value")

    def requests(self) -> list[str]:
        """All that the page asked for, itself too."""
        return [
            event["params"]["request"]["url"]
            for event in self._owner.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """What came to the console or the log."""
        told = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}
        return [
            json.dumps(event["params"])
            for event in self._owner.events
            if event.get("method") in told
        ]

    def picture(self) -> bytes:
        """A PNG of the page, as far down as it can be drawn."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        height = min(size["height"], 16_000)
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1}
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(shot["data"])


@contextmanager
def browser() -> Iterator[Browser]:
    assert CHROMIUM is not None
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as home:
        # It reads orders from descriptor 3 and answers on 4.
        command = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$@"'
        process = subprocess.Popen(
            ["bash", "-c", command, "sh", CHROMIUM, *_FLAGS, f"--user-data-dir={home}"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": home},
        )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            yield Browser(ours_in, ours_out)
        finally:
            os.close(ours_out)
            os.close(ours_in)
            # Without its pipe it ends by itself.
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
