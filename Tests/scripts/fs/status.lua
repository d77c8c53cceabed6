-- The status of a path describes the link itself, or its target; nil where nothing is.
local check = require "check"
local fs = require "flow.fs"

local dir = fs.temp_dir()
fs.write(dir .. "/file", "12345")
os.execute(([[cd '%s' && chmod 604 file && touch -d @1500000000.25 file && ln -s file link &&
  ln -s nowhere dangling && ln -s loop loop && mkfifo pipe]]):format(dir))

local status = fs.stat(dir .. "/file")
check.same(status, { type = "file", size = 5, mtime = 1500000000.25, mode = tonumber("604", 8) })
check.equal(math.type(status.size), "integer")
check.equal(fs.stat(dir).type, "directory")
check.equal(fs.stat(dir .. "/pipe").type, "pipe")
check.equal(fs.stat("/dev/null").type, "device")
check.equal(fs.stat(dir .. "/link").type, "link")
check.equal(fs.stat(dir .. "/link").target, "file")
check.equal(fs.stat(dir .. "/link", { follow = true }).size, 5)
check.equal(fs.stat(dir .. "/link", { follow = true }).target, nil)
check.equal(fs.stat(dir .. "/dangling").target, "nowhere")
check.equal(fs.stat(dir .. "/dangling", { follow = true }), nil)
check.equal(fs.stat(dir .. "/nothing"), nil)
check.equal(fs.stat(dir .. "/file/below"), nil)
check.equal(fs.exists(dir .. "/link"), true)
check.equal(fs.exists(dir .. "/dangling"), false)
check.equal(fs.exists(dir .. "/file/below"), false)
check.equal(fs.exists(dir .. "/loop"), false)
check.equal(fs.exists(dir .. "/" .. ("x"):rep(300)), false)
local err = check.raises(function() fs.stat(dir .. "/loop", { follow = true }) end, "loop")
check.equal(err.name, "ELOOP")
