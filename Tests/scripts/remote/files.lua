-- Files of the type `file` travel: needs once per content, with a cache on each node, and gives back to the script.
-- clock: real: other processes execute the ops
local check = require "check"
local flow = require "flow"
local fs = require "flow.fs"
local remote = require "remote"
local servers = require "servers"

local server <close> = remote.server()
local dir <close> = servers.folder()
for _, name in ipairs { "cache1", "cache2/flowlua/files", "node", "script/in", "shared" } do fs.mkdir(dir .. "/" .. name) end

-- Nodes whose working folder and cache are their own.
local function join(name, cache, ...)
  return server:join({ name = name, cwd = dir .. "/node", env = { XDG_CACHE_HOME = dir .. "/" .. cache } }, ...)
end
join("m1", "cache1", "--tags", "one")
join("m2", "cache2", "--tags", "two")
server.cwd = dir .. "/script"

-- Parts of the object store have 128 KiB.
local function content(size, seed)
  local parts = {}
  for k = 1, size // 16 do parts[k] = ("%015d\n"):format(k * seed) end
  return table.concat(parts)
end
local large = content(5 << 20, 7)
fs.write(server.cwd .. "/in/scene.txt", large)
fs.write(server.cwd .. "/small.txt", "small")
fs.write(dir .. "/shared/common.txt", "common")

-- The names in the cache of a node, without the folders of processes.
local function cached(name)
  local names = {}
  for _, entry in ipairs(fs.list(dir .. "/" .. name .. "/flowlua/files")) do
    names[#names + 1] = entry:match "/(%x+)$"
  end
  return names
end

-- Sends a request to the server without a client; returns the reply.
local function request(subject, body)
  local script = ([[exec 3<>/dev/tcp/127.0.0.1/%d; printf 'CONNECT {}\r\nSUB reply 1\r\nPUB %s reply %d\r\n%s\r\n' >&3; ]] ..
    [[while read -r line <&3; do case $line in MSG*) read -r line <&3; printf '%%s' "$line"; break; esac; done]]):format(
    server.port, subject, #body, body)
  return flow.exec({ "bash", "-c", script }):await().stdout
end

-- How many messages the store of objects has had so far, and how many bytes it has.
local function stored()
  local reply = request("$JS.API.STREAM.INFO.OBJ_flowlua", "")
  return tonumber(reply:match '"last_seq":(%d+)'), tonumber(reply:match '"bytes":(%d+)')
end

local prelude = [[
local fs = require "flow.fs"
local RenderOp = flow.op("RenderOp", {
  thread = "remote", tags = "one", needs = { scene = "file" }, gives = { image = "file", seen = "string", hash = "string" },
  run = function(ctx)
    local fs = require "flow.fs"
    local path = ctx:get "scene"
    ctx:set("seen", path)
    assert(fs.stat(path).mode & tonumber("222", 8) == 0)
    ctx:set("hash", fs.hash(path))
    fs.mkdir "out"
    fs.write("out/image.txt", "image of " .. fs.read(path):sub(1, 20))
    ctx:set("image", "out/image.txt")
  end,
})
local function describe(run)
  if run.state ~= "succeeded" then return run.state .. " " .. run.error.kind .. " " .. run.error.message end
  return run.state
end
]]

-- A need is a path of a read-only file with the same name; the op gives a file at the same relative path.
local result = server:run(prelude .. [[
  local run = flow.new("f"):data { scene = "in/scene.txt" }:add(RenderOp):run()
  print(describe(run), run.data.scene, run.data.image)
  print(run.data.seen:match "/flowlua/files/jobs/%x+/%x+/1/scene%.txt$" ~= nil, fs.exists(run.data.seen))
  print(run.data.hash == fs.hash "in/scene.txt", (fs.read(run.data.image):gsub("\n", " ")))
  -- Many ops with the same file, and with others of the same content.
  fs.write("in/copy.txt", fs.read "in/scene.txt")
  local scenes = {}
  for k = 1, 20 do scenes[k] = k % 2 == 0 and "in/scene.txt" or "in/copy.txt" end
  local HashOp = flow.op("HashOp", {
    thread = "remote", tags = "one", needs = { scene = "file" }, gives = { hash = "string" },
    run = function(ctx) ctx:set("hash", require "flow.fs".hash(ctx:get "scene")) end,
  })
  local run = flow.new("g"):data { scenes = scenes }
    :add_grouped(HashOp, { input = "scenes", output = "hashes", max_concurrent = 8 }):run()
  local same = 0
  for _, hash in ipairs(run.data.hashes) do if hash == fs.hash "in/scene.txt" then same = same + 1 end end
  print(describe(run), same)
]])
check.equal(result.stderr, "")
check.equal(result.stdout, [[
succeeded	in/scene.txt	out/image.txt
true	false
true	image of 000000000000007 0000
succeeded	20
]])
check.same(cached "cache1", { fs.hash(server.cwd .. "/in/scene.txt") })
check.equal(fs.read(server.cwd .. "/out/image.txt"), fs.read(dir .. "/node/out/image.txt"))
-- The large file has 40 parts, and was sent once; the script has removed it from the server.
local messages, bytes = stored()
assert(messages > 40 and messages < 120, messages)
assert(bytes < 200000, bytes)

-- The cache has it for the next script, unless something has changed it there.
local function inode(path)
  local pipe <close> = io.popen("stat -c %i " .. path)
  return pipe:read "l"
end
local path = dir .. "/cache1/flowlua/files/" .. cached "cache1"[1]
local before = inode(path)
local one = prelude .. [[
  local run = flow.new("f"):data { scene = "in/scene.txt" }:add(RenderOp):run()
  print(describe(run), run.data.hash == fs.hash "in/scene.txt")
]]
check.equal(server:run(one).stdout, "succeeded\ttrue\n")
check.equal(inode(path), before)
local after = stored()
assert(after - messages < 40, after - messages)
assert(os.execute(("chmod u+w %s && printf x | dd of=%s conv=notrunc status=none"):format(path, path)))
check.equal(server:run(one).stdout, "succeeded\ttrue\n")
check.equal(fs.hash(path), cached "cache1"[1])

-- A file that changes is sent again; lists, absent files, and what the op gives in other forms.
local result = server:run(prelude .. [[
  for _, text in ipairs { "first", "second" } do
    fs.write("changing.txt", text)
    local run = flow.new("f"):data { scene = "changing.txt" }:add(RenderOp):run()
    print(describe(run), fs.read "out/image.txt")
  end
  local ListOp = flow.op("ListOp", {
    thread = "remote", needs = { files = "file[]", none = "file?", text = "string|file" },
    gives = { copies = "file[]", same = "file", made = "file", text = "string" },
    run = function(ctx)
      local fs, copies = require "flow.fs", {}
      fs.mkdir "copies"
      for k, path in ipairs(ctx:get "files") do
        copies[k] = "copies/" .. k .. path:match "[^/]+$"
        fs.copy(path, copies[k])
      end
      ctx:set("copies", copies)
      ctx:set("same", ctx:get "files"[1])
      local name = fs.temp_dir() .. "/made.txt"
      fs.write(name, "made there")
      ctx:set("made", name)
      ctx:set("text", ctx:get "text" .. tostring(ctx:get("none", "file?")) .. name)
    end,
  })
  -- A file in a temporary folder stays until the run ends, as for an op that executes here.
  local ReadOp = flow.op("ReadOp", { needs = { made = "file" }, gives = { content = "string" },
    run = function(ctx) ctx:set("content", fs.read(ctx:get "made")) end })
  local run = flow.new("list"):data { files = { "small.txt", "in/scene.txt", "small.txt" }, text = "no path" }
    :add(ListOp):add(ReadOp):run()
  print(describe(run), table.concat(run.data.copies, " "), run.data.same)
  print(fs.read(run.data.copies[1]), fs.read(run.data.copies[2]) == fs.read "in/scene.txt")
  local text, name = run.data.text:match "^(no pathnil)(.*)$"
  print(text, run.data.content, run.data.made ~= name, run.data.made:match "[^/]+$", fs.exists(run.data.made), fs.exists(name))
]])
check.equal(result.stderr, "")
check.equal(result.stdout, [[
succeeded	image of first
succeeded	image of second
succeeded	copies/1small.txt copies/2scene.txt copies/3small.txt	small.txt
small	true
no pathnil	made there	true	made.txt	false	false
]])

-- Missing files, on either side; a failed op sends nothing.
local result = server:run(prelude .. [[
  for _, scene in ipairs { "nothing.txt", "in" } do
    print(describe(flow.new("f"):data { scene = scene }:add(RenderOp):run()))
  end
  for _, image in ipairs { "nothing.txt", "." } do
    local Op = flow.op("GivesOp", { thread = "remote", tags = "two", gives = { image = "file" },
      run = function(ctx) ctx:set("image", image) end })
    print(describe(flow.new("f"):add(Op):run()))
  end
  local Op = flow.op("FailsOp", { thread = "remote", gives = { image = "file" }, run = function(ctx)
    ctx:set("image", "out/image.txt")
    error("no image", 0)
  end })
  local run = flow.new("f"):add(Op):run()
  print(describe(run), run.data.image)
]])
check.equal(result.stderr, "")
check.match(result.stdout, "^failed mismatched_input [^\n]*<scene>[^\n]*no such file[^\n]*\n")
check.match(result.stdout, "\nfailed mismatched_input [^\n]*it is a directory[^\n]*\n")
check.match(result.stdout, "\nfailed mismatched_output [^\n]*<image>[^\n]*no such file[^\n]*, on m2\n")
check.match(result.stdout, "\nfailed mismatched_output [^\n]*it is a directory[^\n]*, on m2\nfailed error no image\tnil\n$")

-- Paths below a shared folder stay, and their files aren't sent.
local before = #cached "cache2"
local shared = ([[
  %sflow.remote { url = %q, shared = %q }
  local Op = flow.op("SharedOp", {
    thread = "remote", tags = "two", needs = { common = "file" }, gives = { new = "file", seen = "string" },
    run = function(ctx)
      ctx:set("seen", ctx:get "common")
      local new = ctx:get "common":gsub("common", "new")
      require "flow.fs".write(new, "new")
      ctx:set("new", new)
    end })
  local run = flow.new("f"):data { common = %q }:add(Op):run()
  print(describe(run), run.data.seen == run.data.common, run.data.new == %q)
]])
local folder = dir .. "/shared"
local function with(option) return shared:format(prelude, server.url, option, folder .. "/common.txt", folder .. "/new.txt") end
check.equal(server:run(with(folder)).stdout, "succeeded\ttrue\ttrue\n")
check.equal(#cached "cache2", before)
check.match(server:run(with "data").stderr, "field 'shared': 'data' can't be a shared folder: an absolute path without '%.%.' is expected")
local by_option = with(folder):gsub("flow.remote %b{}", "")
check.equal(server:run(by_option, "--remote-shared", "/none," .. folder .. "/").stdout, "succeeded\ttrue\ttrue\n")
check.equal(server:run(by_option, "--remote-shared", folder .. "/com").stdout, "succeeded\tfalse\tfalse\n")
check.match(server:run(by_option, "--remote-shared", "x").stderr, "option '%-%-remote%-shared': 'x' can't be")

-- Somebody deletes the file from the server while a script uses it: it is sent again.
local deleting = server:start(prelude .. [[
  local Second = RenderOp:with { tags = "two" }
  fs.write("deleted.txt", "deleted")
  print(describe(flow.new("f"):data { scene = "deleted.txt" }:add(RenderOp):run()))
  report()
  while not fs.exists "continue" do flow.sleep(0.01) end
  print(describe(flow.new("f"):data { scene = "deleted.txt" }:add(Second):run()))
]])
server:wait_for_report()
local name = flow.exec({ "sh", "-c", "printf file-" .. fs.hash(server.cwd .. "/deleted.txt") .. " | base64 -w0 | tr '+/' '-_'" })
  :await().stdout
check.contains(request("$JS.API.STREAM.PURGE.OBJ_flowlua", '{"filter":"$O.flowlua.M.' .. name .. '"}'), '"purged":1')
fs.write(server.cwd .. "/continue", "")
check.equal(deleting:await().stdout, "succeeded\nsucceeded\n")
