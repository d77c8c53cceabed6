"""The server of login_api.lua: accounts, a profile, uploads."""

import json
import time

from serving import Handler, serve

TOKEN = "sdaftadagasg"
busy = {"b.png"}  # refused once


class Login(Handler):
    def do(self):
        body = self.body()
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


serve(Login)
