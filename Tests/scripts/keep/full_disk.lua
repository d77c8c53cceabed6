-- A store on a full or read-only disk fails the run at once: nothing is executed unrecorded, and nothing is lost.
-- clock: real: the script is another program
--
--   full_disk.lua [DISK]     with a folder on a small file system; without one it makes that
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local disk = arg[1]
if not disk then
  local folder = flow.fs.temp_dir()
  local result = host.unshared("-rm", 'mount -t tmpfs -o size=1m none "$1"', arg[0], folder)
  if not result then return end
  io.stderr:write(result.stderr)
  os.exit(result.status)
end

local store = disk .. "/store"
local function flowlua(command)
  return flow.exec({ kept.binary(host.binary), command, "--store", store }, { check = false }):await()
end
local function finished()
  local list = flowlua("--runs").stdout
  return math.tointeger(list:match "(%d+) finished"), list
end
local function mount(options) flow.exec { "mount", "-o", "remount," .. options, disk }:await() end

-- 4 items that execute, and 3 that have ended and wait for the disk.
local IN_DOUBT = 7

-- Values in the database, and values in files of their own.
for size, count in pairs { [10 * 1024] = 99, [100 * 1024] = 24 } do
  local script = kept.script(([[
  local ItemOp = flow.op("ItemOp", { needs = { item = "integer" }, gives = { text = "string" }, run = function(ctx)
    effect(ctx.name)
    flow.sleep(0.001)
    ctx:set("text", ("%%02d"):format(ctx.index):rep(%d))
  end })
  local items = {}
  for i = 1, %d do items[i] = i end
  local run = flow.new("work"):data { items = items }
    :add_grouped(ItemOp, { input = "items", output = "texts", max_concurrent = 4 }):run()
  if run.error then error(run.error) end
  print(#table.concat(run.data.texts), run.data.texts[1]:sub(1, 4), run.data.texts[%d]:sub(1, 4))
  ]]):format(size // 2, count, count))

  -- It becomes full.
  local result = script:run { "--keep", "--store", store }
  check.equal(result.status, 1)
  check.contains(result.stderr, "can't write the store '" .. store .. "': ")
  assert(result.stderr:lower():find "no space left", result.stderr)
  local executed = #script:effects()
  check.equal(result.stdout, "")
  assert(executed < count, executed)

  -- It is still full, or nearly: nothing is executed that couldn't be recorded.
  result = script:run { "--resume", "--store", store }
  check.equal(result.status, 1)
  assert(result.stderr:lower():find "no space left", result.stderr)
  executed = executed + #script:effects()

  -- With space again: what was recorded isn't executed again.
  mount "size=8m"
  check.equal(flowlua("--verify").stdout, "verified 1 run\n")
  local known = finished()
  assert(known >= executed - 2 * IN_DOUBT and known < count, known)
  result = script:run { "--resume", "--store", store }
  check.match(result.stderr, "^%S+: r%w+: " .. known .. " kept[^\n]*\n$")
  check.equal(result.stdout, ("%d\t0101\t%02d%02d\n"):format(count * size, count, count))
  check.equal(#script:effects(), count - known)
  check.equal(finished(), count)

  -- On a read-only disk it is shown, and nothing is executed.
  mount "ro"
  local _, list = finished()
  check.contains(list, " finished ")
  for _, option in ipairs { "--keep", "--resume" } do
    result = script:run { option, "--store", store }
    check.equal(result.status, 1)
    check.contains(result.stderr, "can't write the store '" .. store .. "': Read-only file system")
  end
  check.equal(#script:effects(), 0)
  mount "rw"
  flow.fs.remove(store, { recursive = true })
  mount "size=1m"
end

-- No store can be made on a full disk.
flow.exec({ "sh", "-c", "cat /dev/zero >\"$0\" 2>&1", disk .. "/zeros" }, { check = false }):await()
local script = kept.script [[flow.op("AOp", function() effect "a" end):run()]]
local result = script:run { "--keep", "--store", store }
check.equal(result.status, 1)
assert(result.stderr:lower():find "no space left", result.stderr)
check.equal(#script:effects(), 0)
flow.fs.remove(disk .. "/zeros")
check.equal(script:run({ "--keep", "--store", store }).status, 0)
check.equal(#script:effects(), 1)
