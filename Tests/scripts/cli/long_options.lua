-- Long options are flowlua's own; a misspelt one is status 2.
local host = require "host"
local check = require "check"
local result = host.run(host.binary, { "--help" })
assert(result.status == 0 and result.stdout:find("script", 1, true))
result = host.run(host.binary, { "--version" })
assert(result.status == 0 and result.stdout:find("flowlua", 1, true))
result = host.run(host.binary, { "--versoin" })
check.equal(result.status, 2, "status")
check.contains(result.stderr, "--versoin", "--version")
