-- A folder is listed in the order of bytes, with patterns, types and functions as filters.
local check = require "check"
local flow = require "flow"
local fs = flow.fs

local dir = fs.temp_dir()
for _, folder in ipairs { "sub/deep/er", "sub/empty", ".hidden" } do fs.mkdir(dir .. "/" .. folder) end
for _, path in ipairs {
  "b.txt", "a.txt", "Z", ".dot", "sub/c.txt", "sub/deep/d.txt", "sub/deep/er/e.md", ".hidden/x.txt", "ä.txt", "[x]",
} do
  fs.write(dir .. "/" .. path, "")
end
os.execute(("ln -s '%s' '%s/sub/up'"):format(dir, dir))

local function listed(options, from)
  local paths = fs.list(from or dir, options)
  for i, path in ipairs(paths) do
    check.equal(path:sub(1, #dir + 1), dir .. "/")
    paths[i] = path:sub(#dir + 2)
  end
  return table.concat(paths, " ")
end

check.equal(listed(), "Z [x] a.txt b.txt sub ä.txt")
check.equal(listed { hidden = true }, ".dot .hidden Z [x] a.txt b.txt sub ä.txt")
check.equal(listed { recursive = true },
  "Z [x] a.txt b.txt sub sub/c.txt sub/deep sub/deep/d.txt sub/deep/er sub/deep/er/e.md sub/empty sub/up ä.txt")
check.equal(listed { recursive = true, hidden = true, match = "x*" }, ".hidden/x.txt")
check.equal(listed { recursive = true, type = "directory" }, "sub sub/deep sub/deep/er sub/empty")
check.equal(listed { recursive = true, type = "link" }, "sub/up")
check.equal(listed { match = "*.txt" }, "a.txt b.txt ä.txt")
check.equal(listed { match = "?.txt" }, "a.txt b.txt ä.txt")
check.equal(listed { match = "[a-b].txt" }, "a.txt b.txt")
check.equal(listed { match = "[!a-b].txt" }, "ä.txt")
check.equal(listed { match = "\\[x]" }, "[x]")
check.equal(listed { recursive = true, match = "**/*.txt" }, "a.txt b.txt sub/c.txt sub/deep/d.txt ä.txt")
check.equal(listed { recursive = true, match = "sub/**/*.*" }, "sub/c.txt sub/deep/d.txt sub/deep/er/e.md")
check.equal(listed { recursive = true, match = "sub/*" }, "sub/c.txt sub/deep sub/empty sub/up")
check.equal(listed({ recursive = true, match = "deep/*" }, dir .. "/sub"), "sub/deep/d.txt sub/deep/er")
check.equal(listed({}, dir .. "/"), "Z [x] a.txt b.txt sub ä.txt")
-- The top may be a link; those in it aren't followed.
check.equal(listed({ type = "file" }, dir .. "/sub/up"), "sub/up/Z sub/up/[x] sub/up/a.txt sub/up/b.txt sub/up/ä.txt")

-- A function gets path and type; it may wait, and its error is raised.
check.equal(listed { recursive = true, match = function(path, type)
  flow.sleep(1)
  return type == "file" and path:find "deep"
end }, "sub/deep/d.txt sub/deep/er/e.md")
local raised = {}
local _, err = pcall(fs.list, dir, { match = function() error(raised) end })
check.equal(err, raised)

-- The paths begin with the folder as it is given.
check.equal(fs.list("Tests/scripts/lib", { match = "check.lua" })[1], "Tests/scripts/lib/check.lua")
check.equal(fs.list("./Tests/scripts/lib/", { match = "check.lua" })[1], "./Tests/scripts/lib/check.lua")
