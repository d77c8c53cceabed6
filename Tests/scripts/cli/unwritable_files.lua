-- Options that write files refuse a place where that isn't possible before the script begins, and change nothing there.
local check, flow, host = require "check", require "flow", require "host"
local fs = flow.fs
local folder <close> = setmetatable({ path = fs.temp_dir() }, {
  __close = function(self)
    flow.exec({ "chmod", "-R", "u+w", self.path }):await()
    fs.remove(self.path, { recursive = true })
  end,
})
local file, link, closed = folder.path .. "/file", folder.path .. "/link", folder.path .. "/closed"
fs.write(file, "old")

local options = { "--timeline", "--report", "--trace", "--events", "--summary=text:", "--summary=json:", "--otlp=", "--graph" }
local function run(option, path)
  -- The suffix selects the form of a graph.
  if option == "--graph" and not path:find "%.dot$" then path = path .. ".dot" end
  local words = option:find "[:=]$" and { option .. path } or { option, path }
  words[#words + 1] = "-"
  local result = host.run(host.binary, words, { stdin = "print 'executed'" })
  return result, ("option '%s' can't write '%s': "):format(option:match "^%-%-%a+", path)
end

local function refused(option, path, reason)
  local result, message = run(option, path)
  check.equal(result.status, 2, option)
  check.equal(result.stdout, "", option)
  check.contains(result.stderr, message .. reason .. "\n")
end

fs.mkdir(folder.path .. "/folder.dot")
for _, option in ipairs(options) do
  refused(option, folder.path .. "/none/x", "No such file or directory")
  refused(option, file .. "/x", "Not a directory")
  refused(option, option == "--graph" and folder.path .. "/folder.dot" or folder.path, "Is a directory")
  if option ~= "--graph" then refused(option, folder.path .. "/new/", "Is a directory") end
end
check.equal(fs.read(file), "old")
check.equal(#fs.list(folder.path), 2)

-- Permissions; the administrator may write everywhere.
if flow.exec({ "id", "-u" }):await().stdout ~= "0\n" then
  fs.mkdir(closed)
  fs.write(closed .. "/x", "old")
  flow.exec({ "chmod", "a-w", closed, file }):await()
  for _, option in ipairs(options) do
    refused(option, closed .. "/new", "Permission denied")
    -- A file that has no spans is refused for that.
    if option ~= "--graph" and option ~= "--otlp=" then refused(option, file, "Permission denied") end
  end
  -- Another file takes the place of this one.
  refused("--report", closed .. "/x", "Permission denied")
  flow.exec({ "chmod", "u+w", file }):await()
end

-- The kind of a file doesn't decide whether it can be written: a link, a device, a new file in the present folder.
flow.exec({ "ln", "-s", file, link }):await()
for _, option in ipairs(options) do
  for _, path in ipairs { link, "/dev/null" } do
    if option ~= "--graph" then
      local result = run(option, path)
      check.equal(result.stderr, "", option)
      check.equal(result.stdout, "executed\n", option)
    end
  end
end
local bare = ".unwritable_files.tmp"
check.equal(run("--report", bare).stderr, "")
fs.remove(bare)
