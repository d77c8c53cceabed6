-- With FLOWLUA_STORE_KEY secrets are kept encrypted; with another key, or none, their ops are executed again.
-- clock: real: the script is another program
local check, flow, kept = require "check", require "flow", require "kept"

local script = kept.script [[
local token = flow.secret "hunter2-token"
assert(os.getenv "FLOWLUA_STORE_KEY" == nil)
assert(flow.exec { "sh", "-c", "echo ${FLOWLUA_STORE_KEY-none}" }:await().stdout == "none\n")
local MakeOp = flow.op("MakeOp", function(ctx) effect "make" ctx:set("token", token) ctx:set("plain", 1) end)
local LongOp = flow.op("LongOp", function(ctx) effect "long" ctx:set("long", flow.secret(("hunter3" .. ("x"):rep(100000)))) end)
local UrlOp = flow.op("UrlOp", { needs = { token = "string" }, run = function(ctx)
  effect "url"
  ctx:set("urls", { { "https://x/?t=" .. ctx:get "token" }, token })
end })
local ItemOp = flow.op("ItemOp", { needs = { item = "integer" }, gives = { out = "any" }, thread = "worker",
  run = function(ctx) ctx:set("out", "hunter2-token") end })
local CheckOp = flow.op("CheckOp", function(ctx)
  assert(ctx:get "token" == "hunter2-token" and #ctx:get "long" == 100007)
  assert(ctx:get "urls"[1][1] == "https://x/?t=hunter2-token")
  assert(ctx:get "outs"[1] == "hunter2-token")
  effect "checked"
  ctx:fail "stop"
end)
local run = flow.new("work"):add(MakeOp):add(LongOp):add(UrlOp)
  :add_grouped(ItemOp, { input = "list", output = "outs" }):add(CheckOp):run { list = { 1 } }
assert(not run:summary():find("hunter", 1, true))
]]

local function with(key) return { environment = { FLOWLUA_STORE_KEY = key } } end
local function lacks_secrets()
  for _, file in ipairs(flow.fs.list(script.folder .. "/.flowlua", { recursive = true })) do
    if flow.fs.stat(file).kind == "file" then
      local text = flow.fs.read(file)
      for _, form in ipairs { "hunter2", "hunter3", "aHVudGVyMi10b2tlb", "68756e746572", "7265746e7568", "first key" } do
        check.lacks(text, form)
      end
    end
  end
end

local result = script:run { "--keep", environment = { FLOWLUA_STORE_KEY = "first key" } }
check.lacks(result.stderr, "isn't kept")
script:expect_effects("make", "long", "url", "checked")
lacks_secrets()
local text = script:resume(with "first key")
check.contains(text, "[MakeOp] Kept from run", "[LongOp] Kept from run", "[UrlOp] Kept from run", "[ItemOp #1] Kept from run",
  "add for token: <redacted>")
check.lacks(text, "hunter")
script:expect_effects "checked"
result = script:run { "--verify" }
check.contains(result.stdout, "verified 1 run")
text = script:resume(with "second key")
check.contains(text, "[MakeOp] Again: what it had set can't be read: <token> was encrypted with another FLOWLUA_STORE_KEY")
check.contains(text, "[LongOp] Again: what it had set can't be read: <long> was encrypted with another FLOWLUA_STORE_KEY")
check.match(text, "r%w+: 0 kept, 5 again: ")
script:expect_effects("make", "long", "url", "checked")
text = script:resume(with "second key")
check.contains(text, "[MakeOp] Kept from run", "[LongOp] Kept from run")
script:expect_effects "checked"
lacks_secrets()
-- An empty key is none.
text = script:resume(with "")
check.contains(text, "[MakeOp] Again: what it had set can't be read: <token> is encrypted, and FLOWLUA_STORE_KEY isn't set")
check.contains(text, "[MakeOp] isn't kept")
script:expect_effects("make", "long", "url", "checked")
result = script:run { "-E", "--resume", "--follow", environment = { FLOWLUA_STORE_KEY = "second key" } }
check.contains(result.stderr, "<token> is encrypted, and FLOWLUA_STORE_KEY isn't set")

-- A cached secret, and one of an op that is executed only once.
local cached = kept.script [[
flow.keep()
local token = flow.secret "hunter2-token"
local MakeOp = flow.op("MakeOp", { cache = true, run = function(ctx) effect "make" ctx:set("token", token) end })
flow.new("work"):add(MakeOp):run()
]]
cached:run(with "one")
cached:run(with "one")
cached:expect_effects "make"
check.contains(cached:run({ "--follow", environment = { FLOWLUA_STORE_KEY = "two" } }).stderr,
  "[MakeOp] Again: what it had set can't be read: <token> was encrypted with another FLOWLUA_STORE_KEY")
cached:expect_effects "make"
local once = kept.script [[
local PayOp = flow.op("PayOp", { effect = "once", run = function(ctx) effect "pay" ctx:set("token", flow.secret "hunter2") end })
flow.new("work"):add(PayOp):add(flow.op("FailOp", function(ctx) ctx:fail "stop" end)):run()
]]
once:run { "--keep", environment = { FLOWLUA_STORE_KEY = "one" } }
check.contains(once:resume(with "two"), "[PayOp]", "had finished in run r", "<token> was encrypted with another FLOWLUA_STORE_KEY")
check.contains(once:resume(with "one"), "[PayOp] Kept from run r")
once:expect_effects "pay"

-- Nor does the system show it to other processes of the user, and what was forked before the script; the same for the key of
-- other nodes, and for the token of a server, which has a URL without it.
local shown = kept.script [[
local pipe = io.popen "grep -la sesame-unique-text /proc/[0-9]*/environ 2>/dev/null"
assert(pipe:read "a" == "", "shown")
print(os.getenv "FLOWLUA_REMOTE")
print(flow.exec { "sh", "-c", "echo $FLOWLUA_REMOTE" }:await().stdout)
local SecretOp = flow.op("SecretOp", function(ctx) ctx:set("s", flow.secret "hunter4") end)
SecretOp:run()
]]
for url, without in pairs {
  ["nats://sesame-unique-text@127.0.0.1:1"] = "nats://127.0.0.1:1",
  ["tls://u:sesame-unique-text@h1:4222,tls://u:sesame-unique-text@[::1]"] = "tls://h1:4222,tls://[::1]",
} do
  for _, options in ipairs { {}, { "-E" }, { "--keep" }, { "--remote", "nats://127.0.0.1:2" } } do
    options.environment = { FLOWLUA_REMOTE = url, FLOWLUA_STORE_KEY = "sesame-unique-text-1",
      FLOWLUA_REMOTE_KEY = "sesame-unique-text-2" }
    local seen = shown:run(options)
    check.equal(seen.stderr, "")
    check.equal(seen.stdout, without .. "\n" .. without .. "\n\n")
  end
end
-- Also one that isn't a URL.
local odd = shown:run { "--remote", "nats://127.0.0.1:2", environment = { FLOWLUA_REMOTE = "a/b:sesame-unique-text@h" } }
check.equal(odd.stdout, "h\nh\n\n")
