"""The server of prompts.lua: an API that streams answers as server-sent events, and counts their tokens. Prints its address;
ends when its standard input closes. Every fifth prompt is refused once, and one answer breaks off."""

import http.server
import json
import os
import threading

lock = threading.Lock()
seen = set()
answers = {}  # by idempotency key: nobody pays twice


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def event(self, value):
        data = b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def do_POST(self):
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["prompt"]
        number = int(prompt.split()[-1])
        with lock:
            is_first = prompt not in seen
            seen.add(prompt)
            tokens = answers.setdefault(self.headers["Idempotency-Key"], 10 + number)
        if is_first and number % 5 == 0:
            self.send_response(429)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for word in ("answer ", f"number {number}"):
            self.event({"delta": word})
        if is_first and number == 7:
            self.close_connection = True
            return
        self.event({"usage": tokens})
        self.event(b"[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
while os.read(0, 4096):
    pass
