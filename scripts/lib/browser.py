"""Drives Chromium without a window, for tests and pictures of pages.

It reads commands from stdin, one JSON array a line, and prints the result of each as one line of JSON:

  ["open", URL]            opens a page, and waits until it has loaded
  ["size", WIDTH, HEIGHT]  sets the size of the window; with true as third argument in dark colours
  ["evaluate", CODE]       evaluates JavaScript, of a promise its value
  ["wait", CODE]           evaluates it again and again until it is true, across reloads of the page; that value
  ["picture", FILE]        writes what the window shows as PNG
  ["pictured", FILE, CODE] the same of the element that the code returns
  ["requests"]             the URLs that were requested so far

A command that fails, a JavaScript error and a message on the browser's console end it with status 1.

It needs no other package: Chromium's protocol of messages goes through two pipes.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

PATIENCE = 300  # seconds, for a loaded machine


class Browser:
    def __init__(self, profile):
        to_browser, self.writer = os.pipe()
        self.reader, from_browser = os.pipe()

        def arrange():
            # Chromium reads messages from descriptor 3 and writes them to 4.
            source, target = os.dup(to_browser), os.dup(from_browser)
            os.dup2(source, 3)
            os.dup2(target, 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--no-first-run", "--hide-scrollbars", "--force-color-profile=srgb",
             "--font-render-hinting=none", "--user-data-dir=" + profile, "about:blank"],
            close_fds=False, preexec_fn=arrange, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.rest, self.last, self.session = b"", 0, None
        self.requested, self.problems, self.loads = [], [], 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def message(self, deadline):
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.reader], [], [], left)[0]:
                raise TimeoutError("the browser doesn't respond")
            part = os.read(self.reader, 1 << 20)
            if not part:
                raise EOFError("the browser has ended")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.last += 1
        request = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.writer, data):]
        deadline = time.monotonic() + PATIENCE
        while True:
            message = self.message(deadline)
            if message.get("id") == self.last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self.note(message)

    def note(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requested.append(parameters["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loads += 1
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            # The browser itself asks servers for an icon.
            if not parameters["entry"].get("url", "").endswith("/favicon.ico"):
                self.problems.append(parameters["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.problems.append(str([each.get("value") for each in parameters["args"]]))

    def open(self, url):
        before = self.loads
        failure = self.call("Page.navigate", url=url).get("errorText")
        if failure:
            raise RuntimeError(f"{url}: {failure}")
        deadline = time.monotonic() + PATIENCE
        while self.loads == before:
            self.note(self.message(deadline))

    def size(self, width, height, is_dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def evaluate(self, code):
        result = self.call("Runtime.evaluate", expression=code, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            text = details.get("exception", {}).get("description", details["text"])
            raise RuntimeError(f"{text.splitlines()[0]} in {code[:200]}")
        return result["result"].get("value")

    def wait(self, code):
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                value = self.evaluate(code)
                if value:
                    return value
            except RuntimeError:
                # A page that is loading has no place for the code.
                if time.monotonic() > deadline:
                    raise
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true: {code}")
            time.sleep(0.02)

    def picture(self, path, clip=None):
        options = {"clip": clip} if clip else {}
        data = self.call("Page.captureScreenshot", format="png", **options)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pictured(self, path, code):
        box = self.evaluate(f"(() => {{ const b = ({code}).getBoundingClientRect(); return "
                            "{x: b.x + scrollX, y: b.y + scrollY, width: b.width, height: b.height} })()")
        self.picture(path, {**box, "scale": 1})

    def requests(self):
        return self.requested

    def end(self):
        # Its own end ends its other processes too.
        os.close(self.writer)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def main():
    profile = tempfile.mkdtemp(prefix="browser-")
    browser = None
    try:
        browser = Browser(profile)
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            if name not in ("open", "size", "evaluate", "wait", "picture", "pictured", "requests"):
                sys.exit(f"browser.py: unknown command: {name}")
            print(json.dumps(getattr(browser, name)(*arguments)), flush=True)
            if browser.problems:
                sys.exit("browser.py: " + "\n".join(browser.problems))
    except (RuntimeError, TimeoutError, EOFError) as error:
        sys.exit(f"browser.py: {error}")
    finally:
        if browser:
            browser.end()
        shutil.rmtree(profile, ignore_errors=True)


main()
