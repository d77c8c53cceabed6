-- A script that ends while a file is being sent to the server leaves none of the file's parts there.
-- clock: real: other processes execute the ops
local check, flow, remote = require "check", require "flow", require "remote"
local fs, json = flow.fs, flow.json

local folder = fs.temp_dir()
local path, go = folder .. "/file", folder .. "/go"
-- Without blocks on the disk.
assert(os.execute("truncate -s 400M " .. path))

local server <close> = remote.server()
server:join "m1"
local function stored()
  local state = json.decode(server:request "$JS.API.STREAM.INFO.OBJ_flowlua").state
  return state and state.bytes or 0
end

for _, last in ipairs { "flow.sleep(1000)", "run:cancel() run:wait()", "error 'no'" } do
  local before = stored()
  local script = server:start(([[
    local SizeOp = flow.op("SizeOp", { needs = { file = "file" }, thread = "remote", run = function() end })
    local run = flow.new("f"):add(SizeOp):start { file = %q }
    while not flow.fs.exists(%q) do flow.sleep(0.01) end
    %s
  ]]):format(path, go, last))
  repeat until stored() > before + 1000000
  if last:find "sleep" then script:cancel() end
  fs.write(go, "")
  script:wait()
  -- Descriptions of what was deleted stay, as those of the nats tool do.
  check.equal(stored() < 10000, true, last)
  fs.remove(go)
end
