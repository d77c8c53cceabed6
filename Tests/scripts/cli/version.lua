-- flow.version is what --version prints, and flow.requires refuses other major versions and later ones.
local flow = require "flow"
local host = require "host"
local check = require "check"

check.contains(host.run(host.binary, { "--version" }).stdout, ("\nflowlua %s\n"):format(flow.version))
local major, minor, patch = flow.version:match "^(%d+)%.(%d+)%.(%d+)%-?d?e?v?$"
major, minor, patch = tonumber(major), tonumber(minor), tonumber(patch)
local function version(...) return table.concat({ ... }, ".") end

for _, text in ipairs {
  flow.version, version(major), version(major, 0), version(major, minor), version(major, 0, 0), "0" .. flow.version,
  version(major, minor) .. "-dev",
} do flow.requires(text) end
for _, text in ipairs {
  version(major, minor, patch + 1), version(major, minor + 1), version(major, minor + 10, 0), version(major + 1),
  version(major - 1, 9), "999999999.999999999.999999999",
} do
  check.usage(function() flow.requires(text) end, "needs",
    ("the script needs flowlua %s, or a later %d.x, but this is %s"):format(
      text, tonumber(text:match "%d+"), flow.version))
end
-- Numbers as text would compare 1.10 as 1.1.
for _, text in ipairs { "", ".", "1.", ".1", "1..2", "1.2.3.4", "v1", " 1", "1.-1", "1.2-rc", "-dev", "1-dev-dev", "+1",
  "1\0", "0x1", "1234567890" } do
  check.usage(function() flow.requires(text) end, "requires",
    "bad argument #1 to 'requires' (a version such as '1.2' expected, got '")
end
for _, value in ipairs { 1.1, 1, true, {} } do
  check.usage(function() flow.requires(value) end, "requires", "string expected, got " .. type(value))
end
check.usage(function() flow.requires() end, "requires", "string expected, got no value")

-- Code in a worker has both.
local AskOp = flow.op("AskOp", { thread = "worker", gives = { version = "string" }, run = function(ctx)
  local flow = require "flow" -- luacheck: ignore
  flow.requires "1"
  ctx:set("version", flow.version)
end })
check.equal(AskOp:run().data.version, flow.version)
