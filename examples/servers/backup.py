"""The server of backup.lua: keeps the parts of archives in memory. Prints its address; ends when its standard input closes."""

import hashlib
import http.server
import json
import os
import threading

archives = {"backup-1": {1: b"old"}, "backup-2": {1: b"older"}}
refused = {2}  # the second part, once


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        _, name, *rest = self.path.split("/")
        if self.command == "GET":
            return self.reply(200, sorted(archives))
        if self.command == "DELETE":
            return self.reply(200, archives.pop(name, None) is not None)
        parts = archives.setdefault(name, {})
        if self.command == "PUT":
            number = int(rest[0])
            if number in refused:
                refused.remove(number)
                return self.reply(503, {"error": "busy"})
            parts[number] = body
            return self.reply(201, {"sha256": hashlib.sha256(body).hexdigest()})
        whole = b"".join(parts[number] for number in sorted(parts))
        self.reply(200, {"sha256": hashlib.sha256(whole).hexdigest()})

    do_GET = do_PUT = do_POST = do_DELETE = do

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
os.read(0, 1)
