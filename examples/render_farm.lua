-- run: $DIR/picture.pgm
-- A picture that several nodes compute: each op gets the scene as a file, computes some rows,
-- and gives them as a file. If FLOWLUA_REMOTE names a server, the nodes are those that have
-- joined it. Otherwise the script starts a server and two nodes on this one, if nats-server is
-- installed, and ends them with itself.
local flow = require "flow"
local fs = require "flow.fs"

local WIDTH, HEIGHT, PARTS = 160, 120, 12

-- Starts a program, and returns it once a line of its output has this text; nil if it ends before.
local function start(words, ready)
  local shell = { "sh", "-c", 'exec "$@" 2>&1', "sh", table.unpack(words) }
  local started = flow.exec(shell, { check = false })
  local lines = started:lines()
  for line in lines do
    if line:find(ready, 1, true) then
      -- Its other output isn't of interest; a pipe that nobody reads would stop it.
      flow.spawn(function() for _ in lines do end end)
      return started
    end
  end
end

-- The programs of a farm, which end with this script, whether it fails or not.
local farm <close> = setmetatable({}, { __close = function(programs)
  for k = #programs, 1, -1 do programs[k]:cancel() end
end })

-- The program that executes this script: the options stand between it and the script.
local program = 0
while arg[program - 1] do program = program - 1 end

-- The path of nats-server; nil if it isn't installed. Debian has it in /usr/sbin, where the shells
-- of ordinary users don't look.
local function find_server()
  local search = 'PATH="$PATH:/usr/local/sbin:/usr/sbin"; command -v nats-server'
  return flow.exec({ "sh", "-c", search }, { check = false }):await().stdout:match "[^\n]+"
end

-- Starts a server and two nodes, and returns the URL of the server.
local function start_farm(nats_server, folder)
  for _ = 1, 20 do
    local port = math.random(20000, 31999)
    local url = "nats://127.0.0.1:" .. port
    local server = { nats_server, "-js", "-a", "127.0.0.1", "-p", port, "-sd", folder }
    farm[1] = start(server, "Server is ready")
    if farm[1] then
      for _, name in ipairs { "east", "west" } do
        local node = { arg[program], "--join", url, "--name", name, "--workers", "2" }
        farm[#farm + 1] = assert(start(node, "joined"), "no node")
      end
      return url
    end
  end
  error "no free port for nats-server"
end

local place = "remote"
if not os.getenv "FLOWLUA_REMOTE" then
  local nats_server = find_server()
  if nats_server then
    flow.remote { url = start_farm(nats_server, fs.temp_dir()) }
  else
    print "nats-server isn't installed: the rows are computed by workers of this process"
    place = "worker"
  end
end

-- Some rows of the Mandelbrot set, a byte for each point.
local RowsOp = flow.op("RowsOp", {
  doc = "Computes part of the picture that a scene describes.",
  thread = place, retry = 2,
  needs = { part = "integer", scene = "file" },
  gives = { rows = "file" },
  run = function(ctx)
    local json, files = require "flow".json, require "flow.fs"
    local scene, part = json.read(ctx:get "scene"), ctx:get "part"
    local bytes = {}
    local count = scene.height // scene.parts
    for y = (part - 1) * count, part * count - 1 do
      for x = 0, scene.width - 1 do
        local a = scene.left + scene.size * x / scene.width
        local b = scene.top + scene.size * y / scene.width
        local u, v, steps = 0.0, 0.0, 0
        while steps < 255 and u * u + v * v < 4 do
          u, v, steps = u * u - v * v + a, 2 * u * v + b, steps + 1
        end
        bytes[#bytes + 1] = string.char(255 - steps)
      end
    end
    local path = files.temp_dir() .. "/" .. part
    files.write(path, table.concat(bytes))
    ctx:set("rows", path)
  end,
})

local JoinOp = flow.op("JoinOp", {
  doc = "Writes the picture.",
  needs = { parts = "file[]", picture = "string" },
  run = function(ctx)
    local rows = {}
    for k, path in ipairs(ctx:get "parts") do rows[k] = fs.read(path) end
    local head = ("P5 %d %d 255\n"):format(WIDTH, HEIGHT)
    fs.write(ctx:get "picture", head .. table.concat(rows))
  end,
})

local scene = fs.temp_dir() .. "/scene.json"
flow.json.write(scene, {
  left = -2.2, top = -1.2, size = 3.2, width = WIDTH, height = HEIGHT, parts = PARTS,
})

local numbers = {}
for k = 1, PARTS do numbers[k] = k end
local run = flow.new("picture")
  :data { numbers = numbers, scene = scene, picture = arg[1] or "picture.pgm" }
  :add_grouped(RowsOp, { input = "numbers", as = "part", output = "parts", max_concurrent = 4 })
  :add(JoinOp)
  :run()
if run.error then error(run.error) end

local elsewhere = 0
for _, event in ipairs(run:events()) do
  -- The name of a node's worker, such as "east/1"; workers of this process are numbers.
  if event.kind == "finish" and type(event.lane) == "string" then
    elsewhere = elsewhere + 1
  end
end
print(("%d of %d parts were computed elsewhere; the picture has %d bytes"):format(
  elsewhere, PARTS, #fs.read(run.data.picture)))
