-- A node with the restrictions of the service that comes with flowlua gets a file that an op needs, and sends one that it gives.
-- clock: real: other processes execute the ops
local check, fs, remote, servers = require "check", require "flow.fs", require "remote", require "servers"

local server <close> = remote.server()
local dir <close> = servers.folder()
local cache = dir .. "/cache"
fs.mkdir(cache .. "/flowlua")
fs.write(dir .. "/scene.txt", "a scene")
fs.write(dir .. "/secret.txt", "of others")

-- The words between the program and `--join` in the file of the service, with another folder of caches.
local unit = fs.read "scripts/install.d/flowlua-join.service"
check.contains(unit, "\nEnvironment=XDG_CACHE_HOME=/var/cache\n")
local options = {}
for word in unit:match "\nExecStart=%S+ (.-) %-%-join %$OPTIONS\n":gmatch "%S+" do
  options[#options + 1] = word:gsub("/var/cache", (cache:gsub("%%", "%%%%")))
end
check.contains(table.concat(options, " "), "--sandbox", "--allow-write=" .. cache .. "/flowlua")
server:join({ name = "m1", cwd = "/", env = { XDG_CACHE_HOME = cache } }, table.unpack(options))

local result = server:run(([[
  local RenderOp = flow.op("RenderOp", {
    thread = "remote", needs = { scene = "file", secret = "string" }, gives = { image = "file" },
    run = function(ctx)
      local fs = require "flow.fs"
      assert(not io.open(ctx:get "secret") and not io.open "/etc/passwd")
      local path = fs.temp_dir() .. "/image.txt"
      fs.write(path, "an image of " .. fs.read(ctx:get "scene"))
      ctx:set("image", path)
    end,
  })
  local run = flow.new("f"):data { scene = %q, secret = %q }:add(RenderOp)
    :add(flow.op("ShowOp", { needs = { image = "file" }, run = function(ctx) print(flow.fs.read(ctx:get "image")) end })):run()
  print(run.state, run.error)
]]):format(dir .. "/scene.txt", dir .. "/secret.txt"))
check.equal(result.stderr, "")
check.equal(result.stdout, "an image of a scene\nsucceeded\tnil\n")
-- The content is in its cache.
check.equal(fs.exists(cache .. "/flowlua/files/" .. fs.hash(dir .. "/scene.txt")), true)
