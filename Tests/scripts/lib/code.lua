-- Digests of ops' code, each computed by a process of its own.
local check, host = require "check", require "host"
local fs = require "flow.fs"

local code = {}

code.folder = fs.temp_dir()

local function write(name, text)
  local file = assert(io.open(code.folder .. "/" .. name, "wb"))
  file:write(text)
  file:close()
end

local count = 0

-- The digest of the op `op` of a script. options: files = { [name] = text } beside the script,
-- arguments = list of words.
function code.digest(text, options)
  options = options or {}
  for name, content in pairs(options.files or {}) do write(name, content) end
  -- Each script has a name of its own, which must not count.
  count = count + 1
  local name = ("script%d.lua"):format(count)
  write(name, ([[
    package.path = %q .. package.path
    local flow = require "flow"
  ]]):format(code.folder .. "/?.lua;") .. text .. [[

    io.write(require "flow.testing".code_digest(op))
  ]])
  local result = host.run(host.binary, {
    code.folder .. "/" .. name, table.unpack(options.arguments or {}) })
  check.equal(result.stderr, "", text)
  check.equal(result.status, 0, text)
  check.equal(#result.stdout, 64, text)
  return result.stdout
end

-- Both scripts' ops have the same code.
function code.same(a, b, what)
  check.equal(code.digest(b), code.digest(a), what)
end

-- They have different code.
function code.differs(a, b, what)
  check.equal(code.digest(a) ~= code.digest(b), true, what)
end

return code
