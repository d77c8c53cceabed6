-- The timeline of an example as a picture, as a browser shows it in light and in dark colours.
--
-- Browsers and fonts differ between machines, so pictures aren't compared: a file beside them has
-- the digest of the run's report, and only another report makes other pictures. After a change of
-- how the page looks, remove that file and run scripts/docs.
local flow, fs, json = require "flow", require "flow.fs", require "flow.json"

local shots = {}

-- Writes the page of an example to a file, without what differs between machines and versions;
-- returns the digest of the run's report, which says the same as the page.
function shots.page(program, example, file)
  local report = flow.exec(
    { program, "--virtual-clock", "--timeline", file, "--report", "/dev/stderr", example },
    { env = { TZ = "UTC" } }):await().stderr
  assert(report ~= "", "no report of " .. example)
  report = report:gsub(", run `[^`]*`", "")
  local page = fs.read(file)
  for _, field in ipairs { "version", "host", "id" } do
    page = page:gsub(('"%s":"[^"]*"'):format(field), ('"%s":""'):format(field), 1)
  end
  fs.write(file, page)
  return fs.hash { bytes = report }
end

-- Makes `PATH.png` and `PATH~dark.png`: the page in this file, down to the end of the timeline.
function shots.take(file, path)
  local commands = {}
  for _, name in ipairs { path .. ".png", path .. "~dark.png" } do
    local is_dark = name:find("~dark", 1, true) ~= nil
    table.insert(commands, { "size", 1200, 1000, is_dark })
    table.insert(commands, { "open", "file://" .. file })
    table.insert(commands, { "wait", "document.documentElement.dataset.ready" })
    -- A margin below the timeline, and nothing after that.
    table.insert(commands, { "evaluate", [[
      const after = document.querySelectorAll("#chart ~ *, section:has(#chart) ~ *");
      for (const each of after) each.remove();
      document.body.style.paddingBottom = "8px"; 0]] })
    table.insert(commands, { "pictured", name, "document.body" })
  end
  local lines = {}
  for i, command in ipairs(commands) do lines[i] = json.encode(command) end
  flow.exec({ "python3", "scripts/lib/browser.py" },
    { stdin = table.concat(lines, "\n"), env = { TZ = "UTC" }, timeout = 300 }):await()
end

return shots
