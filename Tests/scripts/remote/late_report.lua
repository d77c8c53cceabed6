-- A report that is lost on its way to the script comes again, of a kept op after later ones: nothing of it is missing then.
-- python: socket
-- clock: real: the server waits before it delivers a report again
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
server:join "m1"

-- Passes everything on between the server and its client, but for the first message that has a text in its first line, and
-- data.
local proxy = [[
import contextlib, socket, sys, threading

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1])
client, _ = listener.accept()
server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))

def to_server():
    # Either of the two may end first.
    with contextlib.suppress(OSError):
        while data := client.recv(65536): server.sendall(data)
        server.shutdown(socket.SHUT_WR)

threading.Thread(target=to_server, daemon=True).start()
lines, lost = server.makefile("rb"), False
while line := lines.readline():
    words = line.split()
    if words[0] in (b"MSG", b"HMSG"):
        line += lines.read(int(words[-1]) + 2)
        if not lost and sys.argv[2].encode() in line.split(b"\r\n")[0] and words[-1] != b"0":
            lost = True
            print("lost")
            continue
    try:
        client.sendall(line)
    except OSError:
        break
]]
local address, store = server.url, flow.fs.temp_dir()

local function test(lost, ...)
  local program = flow.exec { os.getenv "FLOWLUA_TEST_PYTHON", "-u", "-c", proxy, tostring(server.port), lost }
  local lines = program:lines()
  server.url = "nats://127.0.0.1:" .. lines()
  local result = server:run([[
    local WorkOp = flow.op("WorkOp", { gives = { r = "integer" }, thread = "remote", run = function(ctx)
      local flow = require "flow"
      ctx:set("r", 21)
      ctx:log "first"
      flow.sleep(0.2)
      ctx:set("r", 2 * ctx:get "r")
      ctx:log "second"
    end })
    local run = flow.new("work"):add(WorkOp):start()
    run:wait()
    local texts = {}
    for _, event in ipairs(run:events()) do if event.kind == "log" then texts[#texts + 1] = event.message end end
    print(run.state, run.error, run.data.r, table.concat(texts, " "))
  ]], ...)
  check.equal(result.stderr, "")
  check.equal(result.stdout, "succeeded\tnil\t42\tfirst second\n")
  check.equal(lines(), "lost")
  server.url = address
end

-- The node passes it to the script, and has the server store it when that doesn't reply.
test "flowlua.ask."
-- The server stores it at once.
test("$JS.ACK.FLOWLUA_NEWS.", "--keep", "--store", store)
