"""The server of backup.lua: keeps the parts of archives in memory."""

import hashlib

from serving import Handler, serve

archives = {"backup-1": {1: b"old"}, "backup-2": {1: b"older"}}
refused = {2}  # the second part, once


class Backup(Handler):
    def do(self):
        body = self.body()
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


serve(Backup)
