-- A node whose cache is on a full disk fails the ops that need a file there with the reason, and they succeed elsewhere.
-- clock: real: other processes execute the ops
local check, fs, network, remote = require "check", require "flow.fs", require "network", require "remote"

local net <close> = network.enter { "queue", "script", "full", "empty" }
if not net then return end
local server <close> = remote.server { network = net }
for name, size in pairs { full = 256, empty = 16384 } do
  server:join({ name = name, env = { XDG_CACHE_HOME = net:disk(name, size) } }, "--tags", name)
end
server.cwd = server.folder .. "/script"
fs.mkdir(server.cwd)
fs.write(server.cwd .. "/small.txt", "small")
fs.write(server.cwd .. "/large.txt", ("0123456789abcdef"):rep(1 << 16))

local result = server:run [[
  local fs = require "flow.fs"
  local ReadOp = flow.op("ReadOp", {
    needs = { file = "file" }, gives = { hash = "string" }, thread = "remote", tags = "full",
    run = function(ctx) ctx:set("hash", require "flow.fs".hash(ctx:get "file")) end,
  })
  local function try(Op, file)
    local run = flow.new("f"):data { file = file }:add(Op):run()
    print(run.state, run.error and run.error.message or run.data.hash == fs.hash(file))
  end
  try(ReadOp, "large.txt")
  try(ReadOp, "small.txt")
  try(ReadOp:with { tags = "empty" }, "large.txt")
  try(ReadOp, "large.txt")
]]
check.equal(result.stderr, "")
local lines = {}
for line in result.stdout:gmatch "[^\n]+" do lines[#lines + 1] = line end
for _, k in ipairs { 1, 4 } do
  check.match(lines[k], "^failed\tcan't get the file of <file> on full: the disk of '[^']+' is full: " ..
    "the file has 1048576 bytes, and %d+ are free$")
end
check.equal(lines[2], "succeeded\ttrue")
check.equal(lines[3], "succeeded\ttrue")
check.equal(#lines, 4)
