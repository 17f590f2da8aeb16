"""A headless browser: Debian's Chromium, driven by its WebDriver (https://www.w3.org/TR/webdriver2/) over HTTP."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from base64 import b64decode
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

CHROMIUM, DRIVER = "chromium", "chromedriver"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--window-size=1360,860",
)  # fmt: skip
TIMEOUT_SECONDS = 120.0
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The name under which the protocol hands out elements."""

REPLACED = ("stale element reference", "no such element", "element click intercepted")
"""The errors of an element that the page has just drawn anew."""

KEYS = {"Enter": "\ue007", "ArrowDown": "\ue015", "End": "\ue010", "Home": "\ue011", "Tab": "\ue004"}

Seen = TypeVar("Seen")


class BrowserError(Exception):
    """What the driver refused, in its words."""


class Browser:
    """A browser with an empty profile, from `with` to its end; driver and browser are processes of this one."""

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        self._driver: subprocess.Popen[str] | None = None
        self._session = ""

    def __enter__(self) -> Browser:
        driver = self._driver = subprocess.Popen(
            [shutil.which(DRIVER) or DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            assert driver.stdout is not None
            # "ChromeDriver was started successfully on port N."
            line = next(each for each in driver.stdout if "successfully on port" in each)
            self._port = int(line.rstrip(".\n").rpartition(" ")[2])
            options = {
                "binary": shutil.which(CHROMIUM),
                "args": [*FLAGS, f"--user-data-dir={self._profile}"],
            }
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            found = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self._session = f"/session/{found['sessionId']}"
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._ask("DELETE", self._session)
        except OSError:
            pass
        self._end()

    def _end(self) -> None:
        assert self._driver is not None
        self._driver.kill()
        self._driver.wait()
        assert self._driver.stdout is not None
        self._driver.stdout.close()

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, path, None if method != "POST" else json.dumps(body or {}))
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise BrowserError(f"{value['error']}: {value['message']}")
        return value

    def open(self, url: str) -> None:
        """Go there, and wait until it is loaded."""
        self._ask("POST", f"{self._session}/url", {"url": url})

    def reload(self) -> None:
        """Load the page again."""
        self._ask("POST", f"{self._session}/refresh")

    def run(self, script: str, *arguments: object) -> Any:
        """What a script returns, run as the body of a function."""
        return self._ask("POST", f"{self._session}/execute/sync", {"script": script, "args": list(arguments)})

    def _find(self, selector: str) -> str:
        found = self._ask("POST", f"{self._session}/element", {"using": "css selector", "value": selector})
        return str(found[ELEMENT])

    def click(self, selector: str) -> None:
        """The first element of a selector, as a mouse does; one that the page draws anew is looked for again."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while True:
            try:
                self._ask("POST", f"{self._session}/element/{self._find(selector)}/click")
                return
            except BrowserError as error:
                if not str(error).startswith(REPLACED) or time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def type(self, selector: str, text: str) -> None:
        """Into a field, after what it holds; a key by its name in `KEYS`."""
        keys = KEYS.get(text, text)
        self._ask("POST", f"{self._session}/element/{self._find(selector)}/value", {"text": keys})

    def press(self, *names: str) -> None:
        """Keys, at what has the focus."""
        downs = [{"type": kind, "value": KEYS[name]} for name in names for kind in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keys", "actions": downs}]
        self._ask("POST", f"{self._session}/actions", {"actions": actions})

    def clear(self, selector: str) -> None:
        """Empty a field."""
        self._ask("POST", f"{self._session}/element/{self._find(selector)}/clear")

    def text(self, selector: str = "main") -> str:
        """What people read there; empty where there is no such element."""
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def until(self, look: Callable[[], Seen], is_there: Callable[[Seen], object], wanted: str) -> Seen:
        """What `look` gives as soon as it is there. Raises AssertionError with what was there instead."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while not is_there(seen := look()):
            assert time.monotonic() < end, f"no {wanted}; there is: {seen}"
            time.sleep(0.05)
        return seen

    def until_text(self, wanted: str, selector: str = "main") -> str:
        """Wait until people read that there."""
        return self.until(lambda: self.text(selector), lambda seen: wanted in seen, f"{wanted!r} in {selector}")

    def log(self) -> list[str]:
        """What the browser has complained about since it was asked last: errors of scripts, of loading, of policy."""
        return [each["message"] for each in self._ask("POST", f"{self._session}/se/log", {"type": "browser"})]

    def screenshot(self, path: Path) -> None:
        """What is in sight, as PNG."""
        path.write_bytes(b64decode(self._ask("GET", f"{self._session}/screenshot")))

    def emulate_dark(self, is_dark: bool) -> None:
        """Have the system's preference be dark or light."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]
        command = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}}
        self._ask("POST", f"{self._session}/goog/cdp/execute", command)
