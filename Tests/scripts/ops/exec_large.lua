-- A hundred megabytes pass in both directions at once, and both outputs are read together.
local flow, check = require "flow", require "check"
local size = 100 << 20
local text = ("0123456789abcdef"):rep(size // 16)
local copied = flow.exec({ "cat" }, { stdin = text }):await()
assert(copied.stdout == text)
copied = nil
local both = flow.exec {
  "sh", "-c", "head -c 20000000 /dev/zero >&2 & head -c 20000000 /dev/zero; wait" }:await()
check.equal(#both.stdout, 20000000)
check.equal(#both.stderr, 20000000)
-- More input than is read, and an output that continues meanwhile.
local part = flow.exec({ "sh", "-c", "head -c 5; head -c 10000000 /dev/zero" }, { stdin = text })
check.equal(#part:await().stdout, 10000005)
