"""A real browser, where this machine has one: headless Chromium, driven over the pipe of its DevTools protocol.

The protocol needs no package: a command is a JSON object and a NUL byte, written to the browser's file descriptor 3;
answers and events come from 4. One browser serves many pages.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

DARK = {"name": "prefers-color-scheme", "value": "dark"}
LIGHT = {"name": "prefers-color-scheme", "value": "light"}
# what a reader must never see: markup that was not rendered, and what is cut off
FLAWS = r"""
(() => {
  const flaws = [], raw = /\$\\|\\math|mathdefault|\{\{|\{%|\[object /;
  const missing = /\bundefined\b|\bNaN\b/;  // prose of the docs may speak of them, a number or a label may not
  // in code a page may show markup; elsewhere it was not rendered: roles, fences, tags, escaped tags
  const roles = /:[a-z:]+:`|\{[a-z]+(:[a-z]+)?\}`|\{code-cell\}|```|^:::/m;
  const tags = /<\/?(b|i|p|a|em|strong|code|br|span|div|td|tr)\b[^<]*>|&(lt|gt|amp|nbsp|#\d+);/;
  const say = (what, element) => flaws.push(`${what}: ${element.outerHTML.slice(0, 160)}`);
  const lefts = element => element.getBoundingClientRect().left;
  const rights = element => element.getBoundingClientRect().right;
  const scrolls = element => element && (/auto|scroll/.test(getComputedStyle(element).overflowX) ? element
    : scrolls(element.parentElement));
  document.querySelectorAll("details").forEach(fold => { fold.open = true; });
  const shown = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = shown.nextNode(); node; node = shown.nextNode()) {
    const around = node.parentElement;
    if (around.closest("script, style, noscript, template")) continue;
    const docs = around.closest("article.bd-article") !== null, code = around.closest("pre, code, .math") !== null;
    const isRaw = !(docs && code) && raw.test(node.data) || !code && (roles.test(node.data) || tags.test(node.data));
    if (isRaw || !(docs && !around.closest("td")) && missing.test(node.data)) say("raw text", around);
  }
  document.querySelectorAll("[data-chart], [data-explorer]").forEach(each => {
    const told = each.dataset.chart ?? each.dataset.explorer;
    if (raw.test(told) || missing.test(told)) say("raw text in what is told", each);
  });
  const across = document.documentElement.scrollWidth;
  if (across > innerWidth) flaws.push(`the page scrolls: ${across}`);
  document.querySelectorAll("body *").forEach(element => {
    const { width } = element.getBoundingClientRect(), seen = element.checkVisibility({ visibilityProperty: true });
    if (width <= 1 || !seen || element.closest("script, defs, clipPath")) return;
    const svg = element.closest("svg"), style = getComputedStyle(element);
    if (element.tagName === "text" && (rights(element) > rights(svg) + 1 || lefts(element) < lefts(svg) - 1)) {
      say("cut off by its drawing", element);
    }
    if (svg) return;
    if (rights(element) > innerWidth + 1 && !scrolls(element.parentElement)) say("beyond the page", element);
    const over = element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0 && style.display !== "inline";
    if (over && /hidden|clip/.test(style.overflowX)) say("cut off", element);
    if (over && /TD|TH/.test(element.tagName) && style.overflowX === "visible") say("wider than its cell", element);
  });
  return flaws;
})()
"""
LONGEST = 60.0  # seconds that anything may take


def chromium() -> str | None:
    """The program, or None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """A headless browser with a profile of its own and without a network; a context manager."""

    def __init__(self, folder: Path, program: str) -> None:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
        quiet = ["--disable-extensions", "--no-first-run", "--disable-background-networking", "--disable-sync"]
        quiet.append("--host-resolver-rules=MAP * ~NOTFOUND")
        to_browser, self._commands = os.pipe()
        self._answers, from_browser = os.pipe()
        # the shell gives the two ends the numbers that the browser expects
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        started = [program, *options, *quiet, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", *started],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        os.set_blocking(self._answers, False)
        self._number, self._rest, self._events = 0, b"", []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": session} if session else {}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + LONGEST
        while time.monotonic() < until:
            for found in self._read():
                if found.get("id") == self._number:
                    assert "error" not in found, f"{method}: {found['error']}"
                    return found["result"]
                self._events.append(found)
        raise TimeoutError(f"{method} was not answered")

    def events(self, session: str) -> list[dict[str, Any]]:
        """What the page has told since it was opened."""
        return [event for event in self._events if event.get("sessionId") == session]

    def forget(self, session: str) -> None:
        """Drop what a page has told."""
        self._events = [event for event in self._events if event.get("sessionId") != session]

    def _read(self) -> Iterator[dict[str, Any]]:
        try:
            part = os.read(self._answers, 1 << 20)
        except BlockingIOError:
            time.sleep(0.002)
            return
        if not part:
            raise OSError("the browser has ended")
        *messages, self._rest = (self._rest + part).split(b"\0")
        yield from map(json.loads, messages)

    @contextmanager
    def page(self, path: Path, *, width: int = 1400, height: int = 900, scheme: dict = LIGHT) -> Iterator[OpenPage]:
        """Open a file; when the test is done with it, nothing may have been fetched or complained about."""
        with self.tab(width=width, height=height, scheme=scheme) as page:
            page.go(path)
            yield page
            assert page.complaints() == []
            assert page.requests() == []

    @contextmanager
    def tab(self, *, width: int = 1400, height: int = 900, scheme: dict = LIGHT) -> Iterator[OpenPage]:
        """An empty tab, for one page after the other."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = OpenPage(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        page.call("Emulation.setEmulatedMedia", media="screen", features=[scheme])
        yield page
        self.call("Target.closeTarget", targetId=target)
        self.forget(session)


class OpenPage:
    """A page in the browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session, self._url = browser, session, "about:blank"

    def go(self, path: Path) -> None:
        """Open a file here; what the page before it has told is forgotten."""
        self.value("0")
        self._browser.forget(self._session)
        self._url = path.as_uri()
        self.call("Page.navigate", url=self._url)
        self.wait(f"location.href === {json.dumps(self._url)} && document.readyState === 'complete'")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        until = time.monotonic() + LONGEST
        while not self.value(expression):
            assert time.monotonic() < until, f"never true: {expression}"
            time.sleep(0.01)

    def stand_still(self) -> None:
        """No transitions: a page that is resized is at once as it will be."""
        rule = "*, ::before, ::after { transition: none !important; animation: none !important; }"
        made = f"(s => (s.replaceSync({json.dumps(rule)}), s))(new CSSStyleSheet())"
        self.value(f"void (document.adoptedStyleSheets = [{made}])")

    def resize(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def middle(self, selector: str, place: int = 0) -> tuple[float, float]:
        """Where the element is on the screen, once it is scrolled into view."""
        found = f"document.querySelectorAll({json.dumps(selector)})[{place}]"
        self.value(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")
        box = self.value(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({found}.getBoundingClientRect())")
        return box[0], box[1]

    def mouse(self, kind: str, at: tuple[float, float], **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], **more)

    def hover(self, at: tuple[float, float]) -> None:
        self.mouse("mouseMoved", at)

    def click(self, selector: str, place: int = 0) -> None:
        at = self.middle(selector, place)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, at, button="left", clickCount=1)

    def type(self, selector: str, text: str) -> None:
        self.click(selector)
        self.call("Input.insertText", text=text)

    def flaws(self) -> list[str]:
        """Raw markup and what is cut off; folded parts are opened."""
        return self.value(FLAWS)

    def picture(self, path: Path) -> Path:
        """The whole page."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))
        return path

    def pdf(self, path: Path) -> Path:
        """The page on paper."""
        self.call("Emulation.setEmulatedMedia", media="print")
        found = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(found["data"]))
        return path

    def complaints(self) -> list[str]:
        """Errors of scripts, and what was said on the console."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self._events() if event["method"] in kinds]

    def requests(self) -> list[str]:
        """What was fetched beside the file itself."""
        asked = [event for event in self._events() if event["method"] == "Network.requestWillBeSent"]
        return [url for event in asked if (url := event["params"]["request"]["url"]) != self._url]

    def missing(self) -> list[str]:
        """What was asked for and not there."""
        told = [(event["method"], event["params"]) for event in self._events()]
        asked = {
            each["requestId"]: each["request"]["url"] for kind, each in told if kind == "Network.requestWillBeSent"
        }
        failed = [each for kind, each in told if kind == "Network.loadingFailed" and not each.get("canceled")]
        return [f"{asked.get(each['requestId'], '?')}: {each['errorText']}" for each in failed]

    def _events(self) -> list[dict[str, Any]]:
        self.value("0")  # so that earlier events have been read
        return self._browser.events(self._session)
