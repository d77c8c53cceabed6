-- Without encryption no secret travels, wherever it stands: in a table, as a key, in code, an error or a name; with a key, all do.
-- clock: real: other processes execute the ops
-- python: nats
local check, flow, nats, remote = require "check", require "flow", require "nats", require "remote"

local server <close> = remote.server()
local client <close> = nats.client(server.url)
client:listen { subject = ">" }

-- Whether a text was in a message, or is in what the server has stored.
local function is_there(text)
  local pipe <close> = assert(io.popen(("grep -rlaF -e '%s' '%s/store'"):format(text, server.folder)))
  return pipe:read "l" ~= nil or #client:heard_with { text = text }.subjects > 0
end

-- Each line of the output is a name, and what has become of that op. Texts of secrets are made when they are needed, so
-- that none is in code.
local start = [[
  local function remote_op(run, fields)
    fields = fields or {}
    fields.thread, fields.run = "remote", run
    return flow.op("Op", fields)
  end
  local function hush(name) return ("hsuh"):reverse() .. "-" .. name end
  local function try(name, run)
    run:wait()
    print(name .. ":", run.state, run.error and run.error.kind, run.error and run.error.message)
    return run
  end
  local takes = { needs = { p = "table" }, gives = { seen = "string" } }
]]

-- Messages of a script.
local sent = start .. [[
  local Op = remote_op(function(ctx)
    local function seen(value)
      if type(value) ~= "table" then return tostring(value) end
      local parts = {}
      for key, each in pairs(value) do parts[#parts + 1] = tostring(key) .. "=" .. seen(each) end
      return "{" .. table.concat(parts, ",") .. "}"
    end
    ctx:set("seen", seen(ctx:get "p"))
  end, takes)
  local function send(name, p) print(try(name, Op:run { p = p }).data.seen) end
  send("field", { x = { y = flow.secret(hush "field") } })
  send("key", { [flow.secret(hush "key")] = 1 })
  send("list", { 1, { flow.secret(hush "list") } })
  send("table", { flow.secret { hush "table" } })
  send("short", { flow.secret "abc" })
  send("number", { flow.secret(123456) })
  send("text", { "Bearer " .. hush "field" })
  try("bound", remote_op(function() end) { flow.secret(hush "bound") }:run())
  try("item", flow.new("group"):data { items = { { name = "a", token = flow.secret(hush "item") } } }
    :add_grouped(Op, { input = "items", as = "p" }):run())
  local direct, within = flow.secret(hush "upvalue"), { flow.secret(hush "within") }
  local function inner() return within end
  try("upvalue", remote_op(function() return tostring(direct) end):run())
  try("upvalue of an upvalue", remote_op(function() return inner() end):run())
  try("result", flow.resolved { flow.secret(hush "result") }:next(function() end, { thread = "remote" }))
]]
local names = {
  "field", "key", "list", "table", "short", "number", "text", "bound", "item", "upvalue", "upvalue of an upvalue", "result",
}
local refusal = "\tfailed\tusage\ta secret isn't sent without encryption, since others might read it: "

-- Messages of a node.
local reported = start .. [[
  local function made(name) return ("hsuh"):reverse() .. "-" .. name end
  local function gives(name, value)
    try(name, remote_op(function(ctx) ctx:set("o", value()) flow.sleep(3600) end, { gives = { o = "table" } }):run())
  end
  gives("output", function() return { x = { flow.secret(made "output") } } end)
  gives("short output", function() return { flow.secret "abc" } end)
  gives("text of an output", function() flow.secret(made "output") return { "Bearer " .. made "output" } end)
  try("result", flow.resolved(1):next(function() return { flow.secret(made "result") } end, { thread = "remote" }))
]]

-- Texts in which a secret is replaced: in both directions an op is executed all the same.
local texts = start .. [[
  local name = hush "name"
  flow.secret(name)
  try("name", flow.op("Op " .. name, { thread = "remote", run = function() end }):run())
  try("label", flow.new("group"):data { items = { 1 } }
    :add_grouped(remote_op(function() end), { input = "items", as = "n", label = function() return name end }):run())
  try("error", flow.failed { message = "no " .. name, field = flow.secret "abc" }
    :next_on_error(function(e) return assert(e.message == "no <redacted>" and e.field == nil) end, { thread = "remote" }))
  try("error of a node", remote_op(function()
    local text = ("hsuh"):reverse() .. "-made"
    error { message = "no " .. text, field = { flow.secret(text) }, cause = "for " .. text }
  end):run())
  local run = remote_op(function(ctx) ctx:log "began" flow.sleep(3600) end):start()
  while not run:summary():find "began" do flow.sleep(0.005) end
  run:cancel("as " .. name)
  try("cancel", run)
]]

server:join "open"
local result = server:run(sent)
check.equal(result.stderr, "")
for _, name in ipairs(names) do check.contains("\n" .. result.stdout, "\n" .. name .. ":" .. refusal) end
result = server:run(reported)
check.equal(result.stderr, "")
for _, name in ipairs { "output", "short output", "text of an output", "result" } do
  check.contains("\n" .. result.stdout, "\n" .. name .. ":" .. refusal)
end
result = server:run(texts)
check.equal(result.stderr, "")
check.match(result.stdout, "^name:\tsucceeded\tnil\tnil\nlabel:\tsucceeded\tnil\tnil\nerror:\tsucceeded\tnil\tnil\n"
  .. "error of a node:\tfailed\terror\t[^\n]*no <redacted>\ncancel:\tcancelled\tcancelled\t[^\n]*as <redacted>\n$")
check.equal(is_there "hush-", false)
-- The test would notice it.
result = server:run((sent:gsub("flow.secret", "(function(value) return value end)")))
check.lacks(result.stdout, "failed")
check.equal(is_there "hush-field", true)
server.nodes[1]:signal "TERM"
server.nodes[1]:wait()

-- With a key secrets travel where they stand, and are secrets there.
server.environment = { FLOWLUA_REMOTE_KEY = "a key of enough bytes" }
server:join "closed"
-- Others than those that have been sent by now.
result = server:run((sent:gsub("hsuh", "llits")))
check.equal(result.stderr, "")
check.lacks(result.stdout, "failed")
check.contains(result.stdout, "{x={y=<redacted>}}", "{<redacted>=1}", "{1=1,2={1=<redacted>}}", "{1=<redacted>}")
check.equal(is_there "still-", false)
