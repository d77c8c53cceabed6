"""Runs a program on a pseudo-terminal, and shows what a person would see on its screen.

    screen.py COLUMNS ROWS PROGRAM [ARGUMENTS]

Commands are read from stdin, one line of JSON each:

    {"type": TEXT}                  types keys
    {"columns": N, "rows": N}       changes the size of the terminal; with `"wraps": true` as terminals do that wrap
                                    what is too long then, otherwise as those that cut it
    {"screen": true}                asks for the screen

Each is replied to with a line of JSON: `lines` are those that have scrolled out of the screen, and those on it
down to the last one that isn't empty; `colors` are the names of the colours in each of these; `status` is that of
the program, once it has ended. The program ends with stdin at the latest.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

import pyte


def resize(terminal, columns, rows):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def wrapped(screen, columns, rows):
    """A screen of another size with the lines of this one, without colours. The cursor stays at its character."""
    lines = [row(line, screen.columns)[0] for line in screen.history.top]
    before = len(lines) + screen.cursor.y
    lines += [row(screen.buffer[number], screen.columns)[0] for number in range(screen.lines)]
    while len(lines) > before + 1 and not lines[-1]:
        lines.pop()
    result = pyte.HistoryScreen(columns, rows, history=10_000)
    stream = pyte.ByteStream(result)
    for line in lines[:before]:
        stream.feed((line + "\r\n").encode())
    start = len(result.history.top) + result.cursor.y + screen.cursor.x // columns
    stream.feed("\r\n".join(lines[before:]).encode())
    result.savepoints = screen.savepoints
    result.cursor.x, result.cursor.y = screen.cursor.x % columns, max(0, start - len(result.history.top))
    return result


def row(line, columns):
    cells = [line[column] for column in range(columns)]
    # The second cell of a wide character is empty.
    text = "".join(cell.data for cell in cells).rstrip()
    colors = {cell.fg for cell in cells if cell.data.strip() and cell.fg != "default"}
    return text, sorted(colors)


def tell_session(leader, number):
    """Sends a signal to all programs of a terminal, also those that a shell has left in the background; returns them."""
    told = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.getsid(int(entry)) == leader:
                os.kill(int(entry), number)
                told.append(int(entry))
        except OSError:
            pass
    return told


def is_paused(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "TZX"
    except OSError:
        return True


def start(command, columns, rows):
    """Starts a program as a shell would: it doesn't lead its session, since the kernel discards what is unread in the
    terminal when a leader ends. Returns the leader, the terminal, the pipe with the status of the program, and the pipe
    whose end ends the leader."""
    report, reported = os.pipe()
    held, leash = os.pipe()
    leader, terminal = pty.fork()
    if leader > 0:
        os.close(reported)
        os.close(held)
        return leader, terminal, report, leash
    # The program must not start before the terminal has its size.
    resize(0, columns, rows)
    program = os.fork()
    if program == 0:
        os.execvp(command[0], command)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
    # The terminal ends for the reader once no other program has it open.
    for descriptor in (0, 1, 2, report, leash):
        os.close(descriptor)
    status = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    os.write(reported, str(status).encode())
    os.read(held, 1)
    os._exit(0)


def stop(number, frame):
    # A second signal must not cut the end of the session off.
    signal.signal(number, signal.SIG_IGN)
    sys.exit(1)


def main():
    # A test that fails ends this process.
    signal.signal(signal.SIGTERM, stop)
    columns, rows = int(sys.argv[1]), int(sys.argv[2])
    screen = pyte.HistoryScreen(columns, rows, history=10_000)
    stream = pyte.ByteStream(screen)
    leader, terminal, report, leash = start(sys.argv[3:], columns, rows)
    status, commands, is_open = None, b"", True

    def feed():
        nonlocal is_open
        try:
            output = os.read(terminal, 65536)
        except OSError:
            output = b""
        is_open = len(output) > 0
        stream.feed(output)

    def reply(command):
        nonlocal screen
        if "type" in command:
            os.write(terminal, command["type"].encode())
        if "columns" in command:
            if command.get("wraps"):
                # Output that was drawn for the old size has to arrive before: it would be wrapped otherwise.
                programs = tell_session(leader, signal.SIGSTOP)
                while not all(map(is_paused, programs)):
                    time.sleep(0.001)
                while is_open and select.select([terminal], [], [], 0)[0]:
                    feed()
                stream.detach(screen)
                screen = wrapped(screen, command["columns"], command["rows"])
                stream.attach(screen)
            else:
                screen.resize(command["rows"], command["columns"])
            resize(terminal, command["columns"], command["rows"])
            if command.get("wraps"):
                tell_session(leader, signal.SIGCONT)
        lines = [row(line, screen.columns) for line in screen.history.top]
        shown = [row(screen.buffer[number], screen.columns) for number in range(screen.lines)]
        while shown and not shown[-1][0]:
            shown.pop()
        lines += shown
        state = {"lines": [text for text, _ in lines], "colors": [names for _, names in lines]}
        if status is not None:
            state["status"] = status
        print(json.dumps(state), flush=True)

    try:
        while True:
            sources = [sys.stdin.fileno()] + ([terminal] if is_open else [])
            ready, _, _ = select.select(sources, [], [])
            if terminal in ready:
                feed()
            if not is_open and status is None:
                status = int(os.read(report, 16))
                os.close(leash)
            if sys.stdin.fileno() in ready:
                received = os.read(sys.stdin.fileno(), 65536)
                if not received:
                    break
                commands += received
                *whole, commands = commands.split(b"\n")
                for command in whole:
                    reply(json.loads(command))
    finally:
        tell_session(leader, signal.SIGKILL)


main()
