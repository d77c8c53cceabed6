-- A watch of a file reports each change of what its path leads to, whichever link on the way is replaced.
local check = require "check"
local flow = require "flow"
local fs = flow.fs

local function folder(commands)
  local dir = fs.temp_dir()
  flow.exec({ "sh", "-ec", commands }, { cwd = dir }):await()
  return dir
end
-- Watches a path, changes something, and returns the changes up to the one of the content "end".
local function changes(dir, path, commands)
  local watch = fs.watch(dir .. "/" .. path)
  local lines = {}
  for _, command in ipairs(commands) do
    flow.exec({ "sh", "-ec", command[1] }, { cwd = dir }):await()
    for _ = 1, command[2] do
      local change = watch()
      check.equal(change.path, dir .. "/" .. path)
      lines[#lines + 1] = change.kind
    end
  end
  watch:close()
  check.equal(watch(), nil)
  return table.concat(lines, " ")
end

-- The file that a link leads to is written, replaced, removed and made again.
local dir = folder "mkdir sub; echo a >sub/real; ln -s sub/real link; ln -s link further"
for _, path in ipairs { "link", "further", "sub/real" } do
  check.equal(changes(dir, path, {
    { "echo b >>sub/real", 1 }, { "echo c >sub/new; mv sub/new sub/real", 1 }, { "rm sub/real", 1 }, { "echo d >sub/real", 1 },
  }), "changed changed removed created", path)
end

-- A link in the middle leads to another file, to nothing, and to a file again, which isn't the one of before.
dir = folder "echo 1 >one; echo 2 >two; ln -s one middle; ln -s middle link"
check.equal(changes(dir, "link", {
  { "ln -s two new; mv -T new middle", 1 }, { "rm middle", 1 }, { "ln -s one middle", 1 },
  { "ln -s $PWD/two new; mv -T new link", 1 }, { "echo 3 >>two", 1 },
}), "changed removed created changed changed")

-- As Kubernetes swaps a mounted ConfigMap: each time the folder with the files of before is removed.
dir = folder "mkdir ..1; echo 1 >..1/conf; ln -s ..1 ..data; ln -s ..data/conf conf"
local swaps = {}
for n = 2, 20 do
  swaps[#swaps + 1] = { ("mkdir ..%d; echo %d >..%d/conf; ln -s ..%d ..tmp; mv -T ..tmp ..data; rm -r ..%d"):format(n, n, n, n, n - 1), 1 }
end
swaps[#swaps + 1] = { "rm -r ..20", 1 }
swaps[#swaps + 1] = { "mkdir ..20; echo back >..20/conf", 1 }
check.equal(changes(dir, "conf", swaps), ("changed "):rep(19) .. "removed created")

-- The swap without a change of the file: another folder with a link to the same one.
dir = folder "echo x >file; mkdir a b; ln -s ../file a/conf; ln -s ../file b/conf; ln -s a current"
check.equal(changes(dir, "current/conf", {
  { "ln -s b new; mv -T new current; echo y >>file", 1 }, { "ln -s c new; mv -T new current", 1 },
  { "mkdir c; ln -s ../file c/conf", 1 },
}), "changed removed created")
