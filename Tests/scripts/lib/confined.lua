-- Runs attacks on what is outside of a sandbox: once in a sandbox, where all is refused, and once without one, where
-- it succeeds. Scripts of the attacks call the system by the C module Tests/attack/attack.c.
local flow, fs, check, host = require "flow", require "flow.fs", require "check", require "host"
local confined = {}

local function sh(text, ...)
  return flow.exec({ "bash", "-c", text, "bash", ... }, { timeout = 60 }):await().stdout
end
confined.sh = sh

-- The compiler of the Swift toolchain, or another one; nil without any.
local function compiler()
  local found = sh [[
    swift=$(command -v swift) && clang=$(dirname "$(readlink -f "$swift")")/clang && [ -x "$clang" ] && echo "$clang" && exit
    command -v clang || command -v cc || command -v gcc || true]]
  return found:match "[^\n]+"
end

-- Compiles a C file of Tests/attack; false, after a line that says so, without a compiler.
function confined.compile(name, output, ...)
  local cc = compiler()
  if not cc then
    check.skip "no C compiler"
    return false
  end
  local flags = sh "pkg-config --cflags lua5.4 2>/dev/null || echo -I/usr/include/lua5.4"
  local words = { cc, "-std=gnu11", "-D_GNU_SOURCE", "-w", "-o", output, "Tests/attack/" .. name }
  for word in flags:gmatch "%S+" do table.insert(words, 2, word) end
  for _, word in ipairs { ... } do words[#words + 1] = word end
  flow.exec(words, { timeout = 60 }):await()
  return true
end

-- A folder with what may be read, `inside`, and what is out of reach, `outside`; it is removed at the end of the test.
-- nil without a compiler.
function confined.place()
  local folder = fs.temp_dir()
  local place = setmetatable({ folder = folder, inside = folder .. "/inside", outside = folder .. "/outside" }, {
    __close = function() fs.remove(folder, { recursive = true }) end,
  })
  fs.mkdir(place.inside)
  fs.mkdir(folder .. "/tmp")
  if not confined.compile("attack.c", place.inside .. "/attack.so", "-shared", "-fPIC") then return nil end
  return place
end

local FILL = [[
  cd "$1" && rm -rf outside inside/area && mkdir -p outside/folder inside/area
  echo "the secret" >outside/secret && echo "in a folder" >outside/folder/file
  printf '#!/bin/sh\necho tool\n' >outside/tool && chmod 755 outside/tool && chmod 644 outside/secret
  ln -s "$1/outside/secret" inside/area/link && ln -s "$1/outside" inside/area/folder_link
  cp inside/attack.so outside/module.so && rm -f inside/readable
  echo "readable" >inside/readable && chmod 644 inside/readable
  touch -d @1000000000 inside/readable outside outside/*]]
-- The state of the folders: names, kinds, permissions, sizes, times, owners, links, content.
local STATE = [[
  cd "$1" && find outside inside/readable -printf '%p %y %m %s %T@ %U %G %n %l\n' | sort
  find outside inside/readable -type f ! -name '*.so' | sort | xargs cat
  lsattr -d outside/secret inside/readable 2>/dev/null || true
  ls inside]]

local PRELUDE = [==[
local place, victim, binary, is_confined = ...
local outside, inside, temporary = place .. "/outside", place .. "/inside", os.getenv "TMPDIR"
local attack = assert(package.loadlib(inside .. "/attack.so", "luaopen_attack"))()
local sys = attack.call
local AT_FDCWD, O_PATH = -100, 0x200000
local function try(what, body, ...)
  local results = table.pack(pcall(body, ...))
  local did = results[1] and results[2]
  io.write(did and "did: " or "refused: ", what, ": ", tostring(did or results[3] or results[2]), "\n")
end
-- The content of a file; an open that succeeds is enough.
local function content(path)
  local file, why = io.open(path)
  if not file then return nil, why end
  return file:read "a" or "no text"
end
local function written(path, mode)
  local file, why = io.open(path, mode or "w")
  if not file then return nil, why end
  file:write "overwritten"
  return file:close()
end
]==]

-- Executes the script of an attack in the sandbox, or without it. `through`: words before the program.
local function execute(place, each, is_confined, through)
  sh(FILL, place.folder)
  local victim <close> = flow.exec({ "sh", "-c", "exec sleep 1000" }, { check = false })
  local path = place.inside .. "/script.lua"
  fs.write(path, PRELUDE .. each[3])
  local before = sh(STATE, place.folder)
  local words = { table.unpack(through or {}) }
  words[#words + 1] = host.binary
  if is_confined then
    words[#words + 1] = "--sandbox"
    for _, option in ipairs(each.options or {}) do words[#words + 1] = option end
  end
  table.move({ path, place.folder, tostring(victim.pid), host.binary, is_confined and "yes" or nil },
    1, 5, #words + 1, words)
  local environment = { TMPDIR = place.folder .. "/tmp" }
  for name, value in pairs(each.env or {}) do environment[name] = value end
  -- The shell is a parent that an attack would end.
  local program = flow.exec({ "bash", "-c", each.shell or "ulimit -c 0; \"$@\"; echo \"the parent is there: $?\"", "bash",
    table.unpack(words) }, { check = false, timeout = each.timeout or 60, env = environment }):await()
  -- A signal arrives later.
  local ended = victim:wait(0.02)
  local after = sh(STATE, place.folder)
  return program, before ~= after and after, ended, before
end

local function refused(place, each, through)
  local program, changed, ended, before = execute(place, each, true, through)
  local shown = ("\n   stdout: %s\n   stderr: %s"):format(program.stdout:sub(1, 1000), program.stderr:sub(1, 500))
  local text = "\n" .. program.stdout
  if text:find("\ndid: ", 1, true) then
    -- A long output may end before it.
    error("it succeeded in the sandbox: " .. text:match "\ndid: ([^\n]*)" .. shown, 0)
  end
  if ended then error("it ended another process:" .. shown, 0) end
  if changed then error(("it changed\n%s   to\n%s"):format(before, changed) .. shown, 0) end
  if not text:find("\nthe parent is there: " .. (each.status or 0), 1, true) then error("its end:" .. shown, 0) end
  if not each.status and not text:find("\nrefused: ", 1, true) then error("nothing was tried:" .. shown, 0) end
end

local function succeeds(place, each)
  local program = execute(place, each, false)
  local text = "\n" .. program.stdout
  if not text:find("\ndid: ", 1, true) or text:find("\nrefused: ", 1, true) then
    error(("it doesn't succeed without a sandbox, either:\n   stdout: %s\n   stderr: %s"):format(
      program.stdout, program.stderr), 0)
  end
end

-- Tries attacks, and raises one error that names each that succeeds. An attack is { NUMBER, SENTENCE, SCRIPT }, with
-- `options` for its sandbox, `env`, `status` of its process, and `alone = REASON` where it needn't succeed without a
-- sandbox.
function confined.all(place, attacks, through)
  local failures = {}
  for _, each in ipairs(attacks) do
    local ok, problem = pcall(refused, place, each, through)
    if ok and not each.alone and not through then ok, problem = pcall(succeeds, place, each) end
    if not ok then failures[#failures + 1] = ("%s. %s: %s"):format(each[1], each[2], problem) end
  end
  if #failures > 0 then
    error(("%d of %d attacks:\n%s"):format(#failures, #attacks, table.concat(failures, "\n")), 2)
  end
end

return confined
