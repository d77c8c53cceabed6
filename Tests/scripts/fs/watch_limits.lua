-- Too many changes are reported as such, with what can be found afterwards; the limits are named.
local check, fs, host, scratch = require "check", require "flow.fs", require "host", require "scratch"

local dir <const>, guard <close> = scratch.folder()
fs.mkdir(dir .. "/tree/old")
local limit = tonumber(fs.read "/proc/sys/fs/inotify/max_queued_events")
if limit <= 20000 then
  local watch = fs.watch(dir .. "/tree", { recursive = true })
  os.execute(([[cd '%s/tree' && mkdir new && cd old && seq 1 %d | xargs touch]]):format(dir, limit))
  -- Each is reported twice at least: when it was made, and when it was closed.
  local found, count, overflows = {}, 0, 0
  repeat
    local change = watch()
    if change.kind == "overflow" then overflows = overflows + 1 end
    if change.kind == "created" and not change.directory then
      check.equal(found[change.path], nil)
      found[change.path] = true
      count = count + 1
    end
  until count == limit
  check.equal(overflows, 1)
  fs.write(dir .. "/tree/new/last", "")
  repeat
    local change = watch()
  until change.kind == "created" and change.path == dir .. "/tree/new/last"
  watch:close()
end

local function limited(setting, path)
  fs.write(dir .. "/script.lua", [[
    local _, err = pcall(require "flow.fs".watch, ..., { recursive = true })
    print(err.name, err.message)
  ]])
  local result = host.unshared("-r", "echo 1 >/proc/sys/user/" .. setting, dir .. "/script.lua", path)
  return result and result.stdout
end
fs.mkdir(dir .. "/two/folders")
local shown = limited("max_inotify_watches", dir .. "/two")
if shown then check.contains(shown, "ENOSPC", "can't watch", "/two/folders", "fs.inotify.max_user_watches") end
