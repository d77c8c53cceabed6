-- No report, page or trace has a secret, in any of the forms in which texts are passed on.
local check, host, fs = require "check", require "host", require "flow.fs"
local scratch = require "scratch"

local script = [[
  local flow = require "flow"
  local secret = 'p"ss\\w/rd\27 <1>'
  local encoded = secret:gsub("[^%w]", function(c) return ("%%%02x"):format(c:byte()) end)
  local FailOp = flow.op("Fail " .. secret, { needs = { password = "string" }, retry = 2, run = function(ctx)
    ctx:log(ctx:get "password")
    flow.exec({ "false", secret }, { check = false }):await()
    flow.when_all_finish({ flow.http("http://127.0.0.1:1/" .. encoded .. "?q=" .. encoded) }):await()
    ctx:fail("refused for " .. ctx:get "password" .. "!")
  end })
  local ItemOp = flow.op("ItemOp", { needs = { x = "string" }, run = function(ctx) error(ctx:get "x") end })
  local run = flow.new("login " .. secret):data { password = flow.secret(secret), list = { "a", secret } }
    :add_grouped(ItemOp, { input = "list", allow_failure = true })
    :add(FailOp):run()
  io.write(run:report(), run:timeline(), run:trace(), run:otlp())
  for _, event in ipairs(run:events()) do
    if event.kind == "program" or event.kind == "request" then print(event.message, event.error) end
  end
]]
local secret = 'p"ss\\w/rd\27 <1>'
local function base64(text)
  local letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
  local digits = {}
  for at = 1, #text - #text % 3, 3 do
    local a, b, c = text:byte(at, at + 2)
    local bits = a << 16 | b << 8 | c
    for shift = 18, 0, -6 do
      local place = (bits >> shift & 63) + 1
      digits[#digits + 1] = letters:sub(place, place)
    end
  end
  return table.concat(digits)
end
local forms = {
  secret, secret:sub(2), 'p\\"ss\\\\w/rd', 'p\\"ss', "w/rd", "w\\/rd", "p%22ss", "%5Cw%2Frd", "w%2Frd",
  base64(secret), base64(secret:sub(2)), base64(secret:sub(3)), "&lt;1",
}

local folder, _ <close> = scratch.folder()
local report, page, trace, spans = folder .. "/r.md", folder .. "/p.html", folder .. "/t.json", folder .. "/s.json"
local result = host.script(script, {}, { before = { "--report", report, "--timeline", page, "--trace", trace, "--otlp", spans } })
check.contains(result.stderr, "login <redacted> failed: ")
for _, text in ipairs { result.stdout, result.stderr, fs.read(report), fs.read(page), fs.read(trace), fs.read(spans) } do
  -- A page has no plain `<` in its data.
  text = text:gsub("\\u003c", "<")
  check.contains(text, "<redacted>", "refused for <redacted>!")
  check.lacks(text, table.unpack(forms))
end
-- Nor has what is printed of a run that is only checked.
local checked = host.script([[
  local flow = require "flow"
  flow.secret "hunter22"
  local run = flow.new("login hunter22"):add(flow.op("Fail hunter22 Op", print)):run()
  print(run.data)
]], {}, { before = { "--check" } }).stdout
check.contains(checked, "[login <redacted>] plan:", "Fail <redacted> Op", "needs the outcome of 'login <redacted>'")
check.lacks(checked, "hunter22")
-- A secret is found in what is no secret: the test would notice it.
local plain = host.script(script:gsub("flow.secret%(secret%)", "secret"), {}, {})
check.contains(plain.stdout, 'p\\"ss\\\\w/rd', "p\"ss")

