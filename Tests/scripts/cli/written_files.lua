-- Options that write files refuse to write over a script, whose name stands where the file was forgotten.
local check, flow, host = require "check", require "flow", require "host"
local fs = flow.fs
local folder <close> = setmetatable({ path = fs.temp_dir() }, {
  __close = function(self) fs.remove(self.path, { recursive = true }) end,
})
local LUA, PROGRAM = "print 'a script'\n", "#!/usr/bin/env flowlua\nprint 'a script'\n"
local lua, program, missing = folder.path .. "/count.lua", folder.path .. "/count", folder.path .. "/new.lua"
fs.write(lua, LUA)
fs.write(program, PROGRAM)

local options = { "--timeline", "--report", "--trace", "--events", "--summary=text:", "--summary=json:", "--otlp=" }
for _, option in ipairs(options) do
  for _, path in ipairs { lua, program, missing } do
    local name, words = option:match "^%-%-%a+", { option, path }
    if option:find "[:=]$" then words = { option .. path } end
    local result = host.run(host.binary, words, { stdin = "print 'standard input'" })
    check.equal(result.status, 2, option)
    check.equal(result.stdout, "", option)
    check.match(result.stderr, name:gsub("%p", "%%%0") .. "'.*" .. path:gsub("%p", "%%%0"))
  end
end
check.equal(fs.read(lua), LUA)
check.equal(fs.read(program), PROGRAM)
check.equal(fs.exists(missing), false)

-- Other files are replaced, also by a script that is a program.
local page = folder.path .. "/page"
fs.write(page, "old")
local result = host.run(host.binary, { "--report", page, program })
check.equal(result.status, 0)
check.equal(result.stdout, "a script\n")
check.equal(fs.read(page) == "old", false)
