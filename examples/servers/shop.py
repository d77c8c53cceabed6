"""The server of scrape.lua: a list in pages, and an item for each. Prints its address; ends when its standard input
closes. It asks a client that hurries to wait."""

import http.server
import json
import os
import threading

hurried = {3}  # pages that are refused once
PAGES, ITEMS = 4, 3


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, value, **headers):
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", "Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(text))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.startswith("/list?page="):
            page = int(self.path.removeprefix("/list?page="))
            if page in hurried:
                hurried.remove(page)
                return self.reply(429, {"error": "slow down"}, Retry_After=1)
            value = {"items": [page * 10 + i for i in range(1, ITEMS + 1)]}
            if page < PAGES:
                value["next"] = page + 1
            return self.reply(200, value)
        number = int(self.path.removeprefix("/items/"))
        if number == 32:
            return self.reply(404, {"error": "sold"})
        self.reply(200, {"name": f"item {number}", "price": number * 7 % 50 + 0.99})

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
while os.read(0, 4096):
    pass
