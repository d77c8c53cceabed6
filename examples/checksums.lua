-- run: examples/library $OUT
--
-- Checksums of all files under a folder, by programs of the system: find lists them, sha256sum
-- reads four files at a time, and checks in the end what was written. No shell reads the names.
--
--   scripts/flowlua examples/checksums.lua DIR [FILE]
local flow = require "flow"
local ExecOp, WriteFileOp = flow.ops.ExecOp, flow.ops.WriteFileOp

local folder, path = arg[1], arg[2] or "SHA256SUMS"
if not folder then error("usage: checksums.lua DIR [FILE]", 0) end

local ListOp = flow.op("ListOp", {
  doc = "Makes a list of what find has printed: only a NUL can't be part of a name.",
  needs = { stdout = "string" },
  gives = { paths = "string[]" },
  thread = "worker",  -- sorting a million names holds up nothing else
  run = function(ctx)
    local paths = {}
    for name in ctx:get("stdout"):gmatch("([^\0]+)\0") do paths[#paths + 1] = name end
    table.sort(paths)
    ctx:set("paths", paths)
  end,
})

local ChecksumOp = flow.op("ChecksumOp", {
  needs = { path = "string" },
  gives = { line = "string" },
  timeout = 60,
  run = function(ctx)
    local sum = flow.exec { "sha256sum", "--", ctx:get "path" }:await()
    ctx:log(ctx:get "path")
    ctx:set("line", sum.stdout)
  end,
})

local JoinOp = flow.op("JoinOp", {
  needs = { lines = "string[]" },
  gives = { content = "string" },
  run = function(ctx) ctx:set("content", table.concat(ctx:get "lines")) end,
})

local run = flow.new("checksums")
  :data { path = path }
  :add(ExecOp { "find", folder, "-type", "f", "-print0" })
  :add(ListOp)
  :add_grouped(ChecksumOp, {
    input = "paths", output = "lines", max_concurrent = 4, allow_failure = true,
    failures = "unreadable",
  })
  :add(JoinOp)
  :add(WriteFileOp)
  :add(ExecOp({ "sha256sum", "--check", "--strict", "--quiet", path }):with { name = "VerifyOp" })
  :run()

for _, failure in ipairs(run.data.unreadable or {}) do print("unreadable: " .. failure.input) end
if not run.ok then error(tostring(run.error), 0) end
print(("%d checksums in %s, and they match"):format(#run.data.lines, path))
