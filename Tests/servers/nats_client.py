"""A client of NATS that shares nothing with flowlua, the package nats-py, for tests.

    nats_client.py URL

Commands are read from stdin, one line of JSON each, and each is replied to with one: `{"error": TEXT}`, or what the
function below says that has the name in the field `do`. Bytes are texts in base64.
"""

import asyncio
import base64
import json
import sys

import nats
from nats.js.errors import NotFoundError


class Client:
    def __init__(self, connection):
        self.connection = connection
        self.streams = connection.jetstream()
        # Messages that were taken and never acknowledged.
        self.taken = []
        # Messages of subjects that it listens to.
        self.heard_messages = []
        self.heard_bytes = []

    async def stream(self, name):
        """The settings and the state of a stream, as the server describes them."""
        info = await self.streams.stream_info(name)
        return {"config": info.config.as_dict(), "state": vars(info.state)}

    async def consumers(self, stream):
        """The consumers of a stream: settings, and how many messages wait and are handed out."""
        return {
            "consumers": [
                {
                    "name": info.name,
                    "config": info.config.as_dict(),
                    "waiting": info.num_pending,
                    "handed_out": info.num_ack_pending,
                }
                for info in await self.streams.consumers_info(stream)
            ]
        }

    async def message(self, stream, number):
        """A stored message."""
        found = await self.streams.get_msg(stream, seq=number)
        return {
            "subject": found.subject,
            "headers": found.headers or {},
            "data": base64.b64encode(found.data or b"").decode(),
        }

    async def publish(self, subject, data="", headers=None, times=1):
        """Publishes a message that many times; the server has all of them then."""
        for _ in range(times):
            await self.connection.publish(subject, base64.b64decode(data), headers=headers)
        await self.connection.flush()
        return {}

    async def listen(self, subject):
        """Listens to a subject, which may have wildcards."""

        async def note(message):
            self.heard_messages.append({"subject": message.subject, "reply": message.reply})
            self.heard_bytes.append(message.data)

        await self.connection.subscribe(subject, cb=note)
        await self.connection.flush()
        return {}

    async def heard(self):
        """What it has heard of all messages that the server has had until now."""
        await self.connection.flush()
        # The package calls back from tasks.
        await asyncio.sleep(0.01)
        return {"messages": self.heard_messages}

    async def heard_with(self, text):
        """The subjects of the messages heard until now that have a text in them."""
        messages = (await self.heard())["messages"]
        found = zip(messages, self.heard_bytes)
        return {"subjects": [message["subject"] for message, data in found if text.encode() in data]}

    async def take(self, stream, consumer, count):
        """Takes messages from a consumer and keeps them without a sign of life; their subjects."""
        puller = await self.streams.pull_subscribe_bind(consumer, stream)
        try:
            messages = await puller.fetch(count, timeout=1)
        except nats.errors.TimeoutError:
            messages = []
        self.taken += messages
        return {"subjects": [message.subject for message in messages]}

    async def objects(self, bucket):
        """The descriptions of the objects of a bucket."""
        try:
            found = await (await self.streams.object_store(bucket)).list(ignore_deletes=True)
        except NotFoundError:
            found = []
        return {
            "objects": [
                {
                    "name": info.name,
                    "size": info.size,
                    "chunks": info.chunks,
                    "digest": info.digest,
                    "parts": info.nuid,
                    "chunk_size": info.options and info.options.max_chunk_size,
                }
                for info in found
            ]
        }

    async def get(self, bucket, name, path):
        """Writes the content of an object, whose digest the package checks, to a file."""
        found = await (await self.streams.object_store(bucket)).get(name)
        with open(path, "wb") as file:
            file.write(found.data)
        return {"size": len(found.data)}

    async def put(self, bucket, name, path):
        """Stores the content of a file as an object."""
        with open(path, "rb") as file:
            await (await self.streams.object_store(bucket)).put(name, file.read())
        return {}


async def main(url):
    connection = await nats.connect(url, connect_timeout=30)
    client = Client(connection)
    reader = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print("ready", flush=True)
    while line := await reader.readline():
        command = json.loads(line)
        try:
            reply = await getattr(client, command.pop("do"))(**command)
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)
    await connection.close()


asyncio.run(main(sys.argv[1]))
