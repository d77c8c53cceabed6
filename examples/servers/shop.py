"""The server of scrape.lua: a list in pages, and an item for each. It asks a client that hurries to wait."""

from serving import Handler, serve

hurried = {3}  # pages that are refused once
PAGES, ITEMS = 4, 3


class Shop(Handler):
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


serve(Shop)
