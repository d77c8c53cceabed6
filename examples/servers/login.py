"""The server of login_api.lua: accounts, a profile, uploads. Prints its address; ends when its standard input closes."""

import http.server
import json
import os
import threading
import time

TOKEN = "sdaftadagasg"
busy = {"b.png"}  # refused once


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, value, **headers):
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", "Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(text))
        self.end_headers()
        self.wfile.write(body)

    def do(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/login":
            known = json.loads(body) == {"email": "test@gmail.com", "password": "123456"}
            return self.reply(200, {"accessToken": TOKEN}) if known else self.reply(401, {"error": "No such account"})
        if self.headers.get("Authorization") != "Bearer " + TOKEN:
            return self.reply(403, {"error": "log in first"})
        if self.path == "/profile":
            return self.reply(200, {"name": "Test", "images": ["a.png", "b.png", "c.png", "d.png"]})
        name = self.path.removeprefix("/images/")
        if name in busy:
            busy.remove(name)
            return self.reply(503, {"error": "busy"}, Retry_After=1)
        # The first image is the smallest.
        time.sleep(0.3 * (ord(name[0]) - ord("a") + 1))
        self.reply(201, {"url": f"/images/{name}", "size": len(body)})

    do_GET = do_POST = do_PUT = do

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
while os.read(0, 4096):
    pass
