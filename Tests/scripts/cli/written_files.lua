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

-- Two options refuse one file, by whatever path; devices and stdout take several.
fs.mkdir(folder.path .. "/deep")
fs.write(page, "")
check.equal(host.run("ln", { "-s", page, folder.path .. "/link" }).status, 0)
for _, first in ipairs(options) do
  for _, second in ipairs(options) do
    local names = { first:match "^%-%-%a+", second:match "^%-%-%a+" }
    for a, b in pairs { [page] = folder.path .. "/link", [folder.path .. "/none"] = folder.path .. "/deep/../none" } do
      local function words(one, other)
        local result = {}
        for option, path in pairs { [first] = one, [second] = other } do
          if option:find "[:=]$" then
            result[#result + 1] = option .. path
          else
            result[#result + 1], result[#result + 2] = option, path
          end
        end
        result[#result + 1] = program
        return result
      end
      if names[1] ~= names[2] then
        result = host.run(host.binary, words(a, b))
        check.equal(result.status, 2, first .. " " .. second)
        check.equal(result.stdout, "")
        check.contains(result.stderr, "'" .. names[1] .. "'", "'" .. names[2] .. "'", " write the same file '")
      end
    end
  end
end
check.equal(fs.exists(folder.path .. "/none"), false)
for _, path in ipairs { "/dev/null", "-" } do
  result = host.run(host.binary, { "--report", path, "--trace", path, program })
  check.equal(result.status, 0, result.stderr)
end
