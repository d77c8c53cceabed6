-- Without /proc, for example in a chroot, the program finds its arguments.
local check = require "check"
local binary = require("host").binary
if not os.execute "test \"$(id -u)\" = 0" then return check.skip "only root may change the root folder" end
local folder = io.popen("mktemp -d"):read("l")
local function sh(command, ...)
  local pipe = io.popen(("folder=%s; binary=%s; %s"):format(folder, binary, command:format(...)))
  local text = pipe:read("a")
  local _, _, status = pipe:close()
  return text, status
end
sh [[
  cp "$binary" "$folder/flowlua"
  ldd "$binary" | grep -o '/[^ ]*' | while read -r library; do cp --parents -L "$library" "$folder"; done
]]
local script <close> = assert(io.open(folder .. "/script.lua", "w"))
script:write [[
  local flow = require "flow"
  local run = flow.op("AnOp", function(ctx) flow.sleep(0.001) ctx:set("x", 1) end):run()
  print(arg[0], arg[1], ..., run.data.x)
]]
script:close()
local text, status = sh "chroot \"$folder\" /flowlua script.lua one 2>&1"
local shown, other = sh "chroot \"$folder\" /flowlua -e 'print(1)' --wrong 2>&1"
sh "rm -rf \"$folder\""
if text:find("cannot change root", 1, true) then return check.skip "no change of the root folder here" end
-- A sanitizer's runtime misses it.
text = text:gsub("==%d+==WARNING: reading executable name failed[^\n]*\n", "")
check.equal(text, "script.lua\tone\tone\t1\n")
check.equal(status, nil or 0)
check.contains(shown, "unrecognized option '--wrong'")
check.equal(other, 2)
