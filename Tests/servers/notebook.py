"""A notebook without a browser, for tests: starts a kernel by jupyter_client and sends it what lines of JSON say.

    notebook.py KERNEL

A line is `{"do": NAME, ...}`; the functions below have the names and say what they reply, one line of JSON each.
`{"error": TEXT}` is the reply about anything that fails. The end of the input kills the kernel.
"""

import json
import queue
import sys
import time

from jupyter_client import KernelManager

PATIENCE = 200


class Notebook:
    def __init__(self, name):
        self.manager = KernelManager(kernel_name=name)
        self.manager.start_kernel(stdout=sys.stderr)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)
        self.hear()

    def hear(self):
        """Waits until what the kernel publishes arrives here: until it knows of this reader, that is lost. And until its
        interpreter has started: ILua publishes that as the end of the latest request, perhaps of the first cell. From then
        on it knows the version of Lua."""
        is_heard = has_started = False
        while not (is_heard and has_started):
            time.sleep(0.01)
            request = self.client.kernel_info()
            has_started = self.reply(request)["language_info"]["version"] != "n/a"
            try:
                while self.client.get_iopub_msg(timeout=1)["parent_header"].get("msg_id") != request:
                    pass
                is_heard = True
            except queue.Empty:
                pass

    def reply(self, request):
        """The reply to a request: those to earlier ones, as of `wait_for_ready`, may still come before it."""
        while True:
            message = self.client.get_shell_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") == request:
                return message["content"]

    def execute(self, code):
        """Executes a cell: its status, the lines of its error, its result, and its output."""
        request = self.client.execute(code)
        result = {"output": ""}
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                result["output"] += content["text"]
            elif kind == "execute_result":
                result["result"] = content["data"]["text/plain"]
            elif kind == "error":
                result["error_lines"] = content["traceback"]
            elif kind == "status" and content["execution_state"] == "idle":
                result["status"] = self.reply(request)["status"]
                return result

    def begin(self, code):
        """Executes a cell, and doesn't wait for its end."""
        self.client.execute(code)
        return {}

    def output(self, text):
        """What is printed now, until the text appears in it."""
        found = ""
        while text not in found:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["msg_type"] == "stream":
                found += message["content"]["text"]
        return {"output": found}

    def complete(self, code):
        """The completions of a text at its end."""
        return {"matches": self.reply(self.client.complete(code))["matches"]}

    def inspect(self, code):
        """What is known about a name."""
        return {"text": self.reply(self.client.inspect(code))["data"].get("text/plain")}

    def is_complete(self, code):
        """Whether a cell could be executed: complete, incomplete or invalid."""
        return {"status": self.reply(self.client.is_complete(code))["status"]}

    def interrupt(self):
        """Interrupts a cell as the button does, but waits for the reply: ILua takes what is sent meanwhile for parts of the
        latest request."""
        message = self.client.session.msg("interrupt_request", {})
        self.client.control_channel.send(message)
        while True:
            reply = self.client.get_control_msg(timeout=PATIENCE)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return {"kind": reply["msg_type"]}

    def shut_down(self):
        """Shuts the kernel down, as a notebook that is closed."""
        self.client.stop_channels()
        self.manager.shutdown_kernel()
        return {}

    def kill(self):
        """Kills the kernel and its process group, as a notebook does whose kernel doesn't react."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        return {}


def main():
    notebook = Notebook(sys.argv[1])
    try:
        print("ready", flush=True)
        for line in sys.stdin:
            command = json.loads(line)
            try:
                reply = getattr(notebook, command.pop("do"))(**command)
            except Exception as problem:
                reply = {"error": f"{type(problem).__name__}: {problem}"}
            print(json.dumps(reply), flush=True)
    finally:
        if notebook.manager.has_kernel:
            notebook.manager.shutdown_kernel(now=True)


main()
