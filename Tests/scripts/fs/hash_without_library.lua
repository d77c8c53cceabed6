-- Without OpenSSL's library a hash is an error that names the package; the rest works.
local check = require "check"
local host = require "host"
local fs = require "flow.fs"

local dir = fs.temp_dir()
fs.write(dir .. "/libcrypto.so.3", "no library")
local result = host.script([[
  local fs = require "flow.fs"
  for _ = 1, 2 do
    local _, err = pcall(fs.hash, { bytes = "" })
    print(err.kind, err.message)
  end
  print(fs.exists "/")
]], nil, { environment = { LD_LIBRARY_PATH = dir } })
check.contains(result.stdout, "error\t", "can't hash: ", "libcrypto.so.3", "(apt install libssl3)", "true\n")
check.equal(result.stderr, "")
