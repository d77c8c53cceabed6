"""An HTTP/1.1 server that misbehaves on request, and reports what it received.

    hostile.py        prints `name=port` lines, then `ready`; ends when its standard input closes

A thread serves each connection with blocking calls, so that a route is a plain sequence of writes. Parameters of
a route stand in the query. Each request with an `id` is recorded: `/requests?id=` lists them as JSON.

| port | does |
|---|---|
| `http`, `other` | serve the routes below; two ports are two origins |
| `refused` | is bound, but doesn't listen: connections are refused |
| `full` | has a full queue: connecting never ends |
| `silent` | accepts connections in the kernel only: nothing is ever read or written |
| `resetting` | accepts a connection and resets it at once |
"""

import base64
import hashlib
import json
import os
import re
import socket
import struct
import sys
import threading
import time
import urllib.parse
import zlib

lock = threading.Lock()
records = {}  # id -> list of what /echo shows
closed = {}  # id -> when the client closed the connection, or what it sent afterwards
ended = set()  # ids of requests whose connections are closed
sent = {}  # id -> bytes that the socket took
versions = {}  # id of a file -> its version
connections = {"accepted": 0, "open": 0, "most": 0}
ports = {}
routes = {}


def route(function):
    routes["/" + function.__name__] = function
    return function


class Closed(Exception):
    """The client has closed the connection."""


class Exchange:
    """A request that was read, without its body, and the connection it came on."""

    def __init__(self, connection, number, count, port):
        self.socket, self.number, self.count, self.port = connection, number, count, port
        self.keep, self.rest = True, b""

    # Reading -----------------------------------------------------------------------------------------

    def more(self):
        try:
            data = self.socket.recv(1 << 18)
        except OSError:
            data = b""
        if not data:
            raise Closed()
        self.rest += data

    def line(self):
        while b"\n" not in self.rest:
            self.more()
        line, self.rest = self.rest.split(b"\n", 1)
        return line.rstrip(b"\r").decode("latin-1")

    def take(self, count):
        while len(self.rest) < count:
            self.more()
        data, self.rest = self.rest[:count], self.rest[count:]
        return data

    def head(self):
        first = self.line()
        self.method, self.target, self.version = first.split(" ")
        parts = urllib.parse.urlsplit(self.target)
        self.path = parts.path
        self.raw_query = parts.query
        self.query = urllib.parse.parse_qs(parts.query, keep_blank_values=True)
        self.lines = []
        while True:
            line = self.line()
            if not line:
                break
            self.lines.append(line)
        self.headers = {}
        for line in self.lines:
            name, value = line.split(":", 1)
            self.headers.setdefault(name.lower(), []).append(value.strip())
        self.expects = "100-continue" in self.header("expect", "").lower()
        self.has_body = "content-length" in self.headers or "transfer-encoding" in self.headers
        self.content = None
        self.time = time.monotonic()

    def header(self, name, default=None):
        return self.headers.get(name, [default])[0]

    def body(self):
        """Reads the body, once."""
        if self.content is not None:
            return self.content
        if self.expects:
            self.expects = False
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in self.header("transfer-encoding", ""):
            parts = []
            while True:
                size = int(self.line().split(";")[0], 16)
                if size == 0:
                    break
                parts.append(self.take(size))
                self.line()
            while self.line():
                pass
            self.content = b"".join(parts)
        else:
            self.content = self.take(int(self.header("content-length", "0")))
        return self.content

    # Parameters --------------------------------------------------------------------------------------

    def text(self, name, default=""):
        return self.query.get(name, [default])[0]

    def integer(self, name, default):
        return int(self.text(name, str(default)))

    def real(self, name, default):
        return float(self.text(name, str(default)))

    # Writing -----------------------------------------------------------------------------------------

    def write(self, data):
        try:
            view = memoryview(data)
            while view:
                count = self.socket.send(view)
                with lock:
                    sent[self.text("id")] = sent.get(self.text("id"), 0) + count
                view = view[count:]
        except OSError:
            raise Closed()

    def start(self, status, *headers, reason="Reason"):
        """Writes the status line and headers; those of the parameter `header` too."""
        lines = [f"HTTP/1.1 {status} {reason}", *headers, *self.query.get("header", [])]
        if not self.keep:
            lines.append("Connection: close")
        self.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    def reply(self, status, body=b"", *headers):
        if isinstance(body, str):
            body = body.encode()
        self.start(status, f"Content-Length: {len(body)}", *headers)
        if self.method != "HEAD":
            self.write(body)

    def json(self, value, status=200):
        self.reply(status, json.dumps(value), "Content-Type: application/json")

    def end(self):
        """Closes the connection when the reply is written."""
        self.keep = False

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Closed()

    def wait_for_close(self):
        """Waits until the client closes the connection, and notes when it did."""
        try:
            while True:
                self.more()
        except Closed:
            with lock:
                closed[self.text("id")] = time.monotonic()
            raise

    def record(self):
        body = self.content or b""
        known = {
            "method": self.method,
            "target": self.target,
            "path": self.path,
            "raw_query": self.raw_query,
            "query": self.query,
            "version": self.version,
            "headers": {name: values[0] for name, values in self.headers.items()},
            "lines": self.lines,
            "length": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
            "port": self.port,
            "connection": self.number,
            "count": self.count,
            "time": self.time,
        }
        if len(body) <= 1 << 16:
            known["hex"] = body.hex()
            try:
                known["body"] = body.decode()
            except UnicodeDecodeError:
                pass
        return known


# The requests that were received ----------------------------------------------------------------------


@route
def echo(x):
    """The request as JSON. status: of the reply; `header` adds headers, on every route."""
    x.body()
    x.json(x.record(), x.integer("status", 200))


@route
def requests(x):
    with lock:
        known = list(records.get(x.text("of"), []))
    x.json(known)


@route
def state(x):
    """Counts of connections; when the client closed that of request `of`, and whether it is closed; how many bytes went out to it."""
    with lock:
        known = dict(connections, now=time.monotonic(), sent=sent.get(x.text("of"), 0))
        if x.text("of") in closed:
            known["closed"] = closed[x.text("of")]
        known["ended"] = x.text("of") in ended
    x.json(known)


# Plain replies ------------------------------------------------------------------------------------------


@route
def reply(x):
    """status, body, header…"""
    x.body()
    x.reply(x.integer("status", 200), x.text("body"))


@route
def raw(x):
    """Writes the bytes of `data` (URL-encoded) as they are, and closes the connection unless `keep`. `size` writes
    pieces of so many bytes, `pause` seconds apart; `hold` keeps the connection open at the end."""
    x.body()
    data = urllib.parse.unquote_to_bytes(re.search("(?:^|&)data=([^&]*)", x.raw_query)[1].replace("+", " "))
    size, pause = x.integer("size", len(data) or 1), x.real("pause", 0)
    x.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for i in range(0, len(data), size):
        if i > 0 and pause > 0:
            time.sleep(pause)
        x.write(data[i : i + size])
    if x.text("hold"):
        x.wait_for_close()
    if not x.text("keep"):
        x.end()


@route
def flaky(x):
    """The first `times` requests of an id get `status` (0: the connection is reset); the next ones `ok` as body."""
    x.body()
    with lock:
        count = len(records.get(x.text("id"), []))
    status = x.integer("status", 503)
    if count > x.integer("times", 1):
        x.query.pop("header", None)
        x.reply(200, "ok")
    elif status == 0:
        x.reset()
    else:
        x.reply(status, x.text("body", "try again"))


@route
def size(x):
    """A body of `size` bytes, all `x`; `chunked` sends it without a length."""
    count = x.integer("size", 1000)
    block = b"x" * min(count, 1 << 16)
    if x.text("chunked"):
        x.start(200, "Transfer-Encoding: chunked")
    else:
        x.start(200, f"Content-Length: {count}")
    while count > 0:
        piece = block[:count]
        x.write(b"%x\r\n%s\r\n" % (len(piece), piece) if x.text("chunked") else piece)
        count -= len(piece)
    if x.text("chunked"):
        x.write(b"0\r\n\r\n")


@route
def lines(x):
    """`count` lines with their numbers, as fast as they are read."""
    x.start(200, "Transfer-Encoding: chunked")
    for i in range(x.integer("count", 10)):
        line = b"%d\n" % (i + 1)
        x.write(b"%x\r\n%s\r\n" % (len(line), line))
    x.write(b"0\r\n\r\n")


@route
def slow(x):
    """Replies after `delay` seconds."""
    x.body()
    time.sleep(x.real("delay", 0.1))
    x.reply(200, x.text("body", "slow"))


@route
def compressed(x):
    """`size` bytes, compressed as `encoding` (gzip, deflate, bare: deflate without zlib's frame); a small `piece` that
    repeats makes a bomb: 1 GB is 1 MB on the wire."""
    encoding = x.text("encoding", "gzip")
    bits = {"gzip": 31, "deflate": 15, "bare": -15}[encoding]
    wire = "gzip" if encoding == "gzip" else "deflate"
    x.start(200, f"Content-Encoding: {x.text('declared', wire)}", "Transfer-Encoding: chunked")
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    block, count = b"x" * (1 << 20), x.integer("size", 1000)
    sending = True
    while sending:
        data = packer.compress(block[:count]) if count > 0 else packer.flush()
        sending, count = count > 0, count - len(block)
        if data:
            x.write(b"%x\r\n%s\r\n" % (len(data), data))
    x.write(b"0\r\n\r\n")


@route
def header_flood(x):
    """`count` headers of `size` bytes each."""
    count, value = x.integer("count", 10000), b"v" * x.integer("size", 10)
    x.write(b"HTTP/1.1 200 OK\r\n")
    for first in range(0, count, 1000):
        last = min(first + 1000, count)
        x.write(b"".join(b"X-%d: %s\r\n" % (i + 1, value) for i in range(first, last)))
    x.write(b"Content-Length: 2\r\n\r\nok")


@route
def cookie(x):
    """Sets each `set` as a cookie; shows the cookies received."""
    x.reply(200, x.header("cookie", ""), *["Set-Cookie: " + text for text in x.query.get("set", [])])


@route
def auth(x):
    """401 without credentials, else those received."""
    if "authorization" not in x.headers:
        return x.reply(401, "who?", 'WWW-Authenticate: Basic realm="here"')
    scheme, rest = x.header("authorization").split(" ", 1)
    x.reply(200, base64.b64decode(rest) if scheme == "Basic" else rest)


@route
def expect(x):
    """Expect: 100-continue is met by `mode`: accept, reject (417 without reading), final (200 without reading), or
    ignore (nothing until the body arrives)."""
    mode = x.text("mode", "accept")
    asked = x.expects
    if mode == "reject":
        x.end()
        return x.reply(417, "no")
    if mode == "final":
        x.end()
        return x.reply(200, "unread")
    x.expects = asked and mode == "accept"
    x.body()
    x.json(dict(x.record(), asked=asked))


# Redirects ----------------------------------------------------------------------------------------------


@route
def redirect(x):
    """To `to`, with `status`."""
    x.body()
    x.reply(x.integer("status", 302), "elsewhere", "Location: " + x.text("to"))


@route
def loop(x):
    x.reply(302, "again", "Location: /loop?n=%d" % (x.integer("n", 0) + 1))


@route
def hops(x):
    """`n` redirects, then /echo."""
    left = x.integer("n", 1)
    x.reply(302, "", "Location: " + (f"/hops?n={left - 1}" if left > 1 else "/echo"))


# Misbehaviour -------------------------------------------------------------------------------------------


@route
def never(x):
    """Reads the request and is silent. `head` sends the headers first, `part` some bytes of the body."""
    x.body()
    if x.text("head") or x.text("part"):
        x.start(200, "Content-Length: 1000000")
        x.write(x.text("part").encode())
    x.wait_for_close()


@route
def unread(x):
    """Never reads the body of the request, and closes the connection after `stall` seconds: a client that is gone
    can't be seen while bytes wait to be read."""
    time.sleep(x.real("stall", 10))
    raise Closed()


@route
def drip(x):
    """A byte every `pause` seconds, `bytes` of them; `head` drips the headers too."""
    pause = x.real("pause", 0.01)
    count = x.integer("bytes", 1000000)
    x.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if x.text("head"):
        for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"y" * count:
            x.write(bytes([byte]))
            time.sleep(pause)
        x.write(b"\r\nContent-Length: 0\r\n\r\n")
        return
    x.start(200, f"Content-Length: {count}")
    for _ in range(count):
        x.write(b"d")
        time.sleep(pause)


@route
def truncated(x):
    """Declares `declared` bytes and sends `sent`; `chunked` leaves out the last chunk instead."""
    x.end()
    if x.text("chunked"):
        x.start(200, "Transfer-Encoding: chunked")
        return x.write(b"5\r\nabcde\r\n")
    x.start(200, "Content-Length: %d" % x.integer("declared", 1000))
    x.write(b"t" * x.integer("sent", 100))


@route
def reset(x):
    """Resets the connection in a `phase`: request (nothing is written), status (within the status line), headers
    (within the headers), head (after them), body (within the body), upload (before the request's body is read)."""
    phase = x.text("phase", "request")
    if phase == "upload":
        x.take(1)
        x.reset()
    x.body()
    parts = {
        "request": b"",
        "status": b"HTTP/1.1 20",
        "headers": b"HTTP/1.1 200 OK\r\nX-One: 1\r\nX-Tw",
        "head": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
        "body": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npart",
    }
    if parts[phase]:
        x.write(parts[phase])
        # A reset overtakes what the client hasn't read.
        time.sleep(x.real("pause", 0.02))
    x.reset()


@route
def endless(x):
    """Sends without an end: a `body`, `headers`, or an event: its `line`, or its `data` in many lines; `rate` limits
    it to so many bytes a second."""
    rate = x.integer("rate", 0)
    block = {"headers": b"X-Endless: " + b"e" * 987 + b"\r\n", "data": b"data: " + b"e" * 65529 + b"\n"}.get(
        x.text("part"), b"e" * 65536)
    x.end()
    if x.text("part") == "headers":
        x.write(b"HTTP/1.1 200 OK\r\n")
    else:
        x.start(200)
    while True:
        x.write(block)
        if rate > 0:
            time.sleep(len(block) / rate)


# Files that are continued -------------------------------------------------------------------------------


def content(name, version, count):
    """Bytes that are different at each place and in each version."""
    line = hashlib.sha256(f"{name} {version}".encode()).hexdigest().encode()
    block = b"".join(b"%s%07d\n" % (line, i) for i in range(count // 72 + 1))
    return block[:count]


@route
def file(x):
    """A file of `size` bytes with the name `of`. `cut` ends a reply after so many bytes; only the first `cuts`
    replies (1), by `how` (close, reset, hang). tag: strong, weak, none; with `date` it has Last-Modified. ranges:
    yes, ignored (200 with all), wrong (206 from another place), refused (416), careless (206 whatever If-Range says),
    empty (206 without a byte), long (206 with more than it declares). most: the size of the largest range."""
    name = x.text("of")
    with lock:
        version = versions.setdefault(name, 1)
        count = len(records.get(x.text("id"), []))
    data = content(name, version, x.integer("size", 100000))
    mark = f'"{name}-{version}"'
    headers = ["Accept-Ranges: bytes"]
    tag = {"strong": mark, "weak": "W/" + mark, "none": None}[x.text("tag", "strong")]
    date = f"Mon, 02 Jan 2023 00:00:{version:02d} GMT" if x.text("date") else None
    if tag:
        headers.append("ETag: " + tag)
    if date:
        headers.append("Last-Modified: " + date)
    status, begin = 200, 0
    asked = re.fullmatch(r"bytes=(\d+)-", x.header("range", ""))
    ranges, condition = x.text("ranges", "yes"), x.header("if-range")
    if asked and ranges == "refused":
        return x.reply(416, "", f"Content-Range: bytes */{len(data)}", *headers)
    end = len(data)
    if asked and ranges != "ignored" and (ranges == "careless" or condition in (None, mark, date)):
        begin = int(asked[1])
        if begin >= len(data):
            return x.reply(416, "", f"Content-Range: bytes */{len(data)}", *headers)
        status = 206
        begin = 0 if ranges == "wrong" else begin
        end = min(end, begin + x.integer("most", end))
        headers.append(f"Content-Range: bytes {begin}-{end - 1}/{len(data)}")
        end = {"empty": begin, "long": len(data)}.get(ranges, end)
    rest = data[begin:end]
    cut = x.integer("cut", 0)
    x.start(status, f"Content-Length: {len(rest)}", *headers)
    if cut > 0 and count <= x.integer("cuts", 1):
        x.write(rest[:cut])
        if x.text("how") == "hang":
            x.wait_for_close()
        if x.text("how") == "reset":
            time.sleep(0.02)
            x.reset()
        x.end()
        return
    x.write(rest)


@route
def change(x):
    """The file `of` has another content from now on."""
    with lock:
        versions[x.text("of")] = versions.get(x.text("of"), 1) + 1
    x.reply(200)


@route
def sum(x):
    """The SHA-256 of the file `of` as it is now."""
    with lock:
        version = versions.setdefault(x.text("of"), 1)
    x.reply(200, hashlib.sha256(content(x.text("of"), version, x.integer("size", 100000))).hexdigest())


# Connections --------------------------------------------------------------------------------------------


def handle(connection, port):
    with lock:
        connections["accepted"] += 1
        connections["open"] += 1
        connections["most"] = max(connections["most"], connections["open"])
        number = connections["accepted"]
    count, rest, exchange = 0, b"", None
    try:
        while True:
            count += 1
            exchange = Exchange(connection, number, count, port)
            exchange.rest = rest
            exchange.head()
            if exchange.text("id"):
                with lock:
                    records.setdefault(exchange.text("id"), []).append(exchange.record())
                if exchange.has_body and exchange.path not in ("/reset", "/expect", "/unread"):
                    exchange.body()
                    with lock:
                        records[exchange.text("id")][-1] = exchange.record()
            found = routes.get(exchange.path)
            if found:
                found(exchange)
            else:
                exchange.body()
                exchange.reply(404, "no such route: " + exchange.path)
            if exchange.header("connection", "").lower() == "close":
                exchange.end()
            if not exchange.keep:
                break
            rest = exchange.rest
    except (Closed, ValueError, TypeError):
        # Closed by the client, or a request that isn't one; a changed redirect lacks parameters.
        pass
    finally:
        connection.close()
        with lock:
            connections["open"] -= 1
            if exchange is not None and getattr(exchange, "query", None):
                ended.add(exchange.text("id"))


def listen(name, backlog=1024):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    if backlog is not None:
        listener.listen(backlog)
    ports[name] = listener.getsockname()[1]
    return listener


def accept(listener, serve):
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


def reset_at_once(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def main():
    threading.stack_size(256 * 1024)
    kept = [listen("refused", None), listen("silent")]
    for name in ("http", "other"):
        listener = listen(name)
        serve = lambda connection, port=ports[name]: handle(connection, port)
        threading.Thread(target=accept, args=(listener, serve), daemon=True).start()
    threading.Thread(target=accept, args=(listen("resetting"), reset_at_once), daemon=True).start()
    # A queue of one place, and more connections than it has.
    full = listen("full", 0)
    kept.append(full)
    for _ in range(3):
        waiting = socket.socket()
        waiting.setblocking(False)
        waiting.connect_ex(full.getsockname())
        kept.append(waiting)
    for name, port in ports.items():
        print(f"{name}={port}")
    print("ready", flush=True)
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
