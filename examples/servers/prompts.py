"""The server of prompts.lua: an API that streams answers as server-sent events, and counts their tokens.
Every fifth prompt is refused once, and one answer breaks off."""

import json
import threading

from serving import Handler, serve

lock = threading.Lock()
seen = set()
answers = {}  # by idempotency key: nobody pays twice


class Prompts(Handler):
    def event(self, value):
        data = b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def do_POST(self):
        prompt = json.loads(self.body())["prompt"]
        number = int(prompt.split()[-1])
        with lock:
            is_first = prompt not in seen
            seen.add(prompt)
            tokens = answers.setdefault(self.headers["Idempotency-Key"], 10 + number)
        if is_first and number % 5 == 0:
            return self.reply(429, {"error": "slow down"}, Retry_After=0)
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


serve(Prompts)
