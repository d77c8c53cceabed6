-- The details of an op of a kept run have the command that executes it again, and the command does that.
-- clock: real: a browser is outside
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local script = kept.script [[
local UploadOp = flow.op("UploadOp", { needs = { name = "string" }, run = function(ctx) effect(ctx:get "name") end })
flow.new("it's"):add_grouped(UploadOp, { input = "names", label = function(name) return name end })
  :run { names = { "a", "b's $HOME" } }
]]
local function details(...)
  assert(script:run({ "--timeline", "page.html", ... }).status == 0)
  local shown = flow.exec({
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" .. script.folder .. "/profile",
    "--enable-logging=stderr", "--dump-dom", "file://" .. script.folder .. "/page.html#select=UploadOp-2",
  }, { timeout = 120 }):await()
  check.lacks(shown.stderr, "CONSOLE")
  check.contains(shown.stdout, "<h3>UploadOp #2 b's $HOME</h3>")
  return shown.stdout
end

-- A run that isn't kept has no data to execute an op with.
check.lacks(details(), "<dt>again</dt>")

local command = details("--keep"):match '<dt>again</dt><dd class="command">([^<]*)</dd>'
script:effects()
local binary = host.binary:find "^/" and host.binary or os.getenv "PWD" .. "/" .. host.binary
local again = command:gsub("^flowlua ", binary .. " ")
local done = flow.exec({ "sh", "-c", again }, { cwd = script.folder, check = false }):await()
check.equal(done.status, 0, again .. done.stderr)
script:expect_effects("b's $HOME")
