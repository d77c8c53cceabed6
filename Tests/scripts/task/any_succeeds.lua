-- `flow.when_any_succeeds` settles with the first success, cancels the others when asked, and has all failures if there is none.
local flow, check = require "flow", require "check"
local function later(seconds, value) return flow.with_delay(seconds, value) end
local function fails(seconds, message) return later(seconds):next(function() error(message, 0) end) end

-- The first success, whatever failed before, with its place.
local slow = later(3, "slow")
local any = flow.when_any_succeeds { fails(1, "no"), slow, later(2, "fast") }
check.equal(any.index, nil)
check.equal(any:await(), "fast")
check.equal(any.index, 3)
check.equal(slow.state, "pending")
check.equal(slow:await(), "slow")
check.equal(flow.when_any_succeeds({ flow.failed "x", flow.resolved(1), flow.resolved(2) }).index, 2)
check.equal(flow.when_any_succeeds({ flow.resolved(nil), later(1) }):await(), nil)

-- With `cancel` the losers are cancelled, with their cleanups, wherever the winner is in the list.
local undone
local LosingOp = flow.op("LosingOp", function(ctx) ctx:defer(function() undone = true end) flow.sleep(60) end)
local loser, last = LosingOp:start(), later(60)
check.equal(flow.when_any_succeeds({ loser, later(1, "won"), last }, { cancel = true }):await(), "won")
loser:wait()
check.equal(undone, true)
check.contains(loser.error, "cancelled: another task has succeeded")
check.equal(last.state, "cancelled")
last = later(60)
check.equal(flow.when_any_succeeds({ flow.resolved "at once", last }, { cancel = true }):await(), "at once")
check.equal(last.state, "cancelled")
last = later(60)
any = flow.when_any_succeeds({ last }, { cancel = true })
any:cancel "enough"
check.equal(any.state, "cancelled")
check.equal(last.state, "cancelled")
last = later(1, "kept")
flow.when_any_succeeds({ last }, { cancel = false }):cancel()
check.equal(last:await(), "kept")

-- No success: all failures together, in the order of the tasks.
any = flow.when_any_succeeds({ fails(2, "second"), fails(1, "first"), flow.cancelled "third" }, { cancel = true })
local err = check.raises(function() any:await() end, "none of 3 tasks has succeeded: second; first; cancelled: third")
check.equal(err, any.error)
check.equal(err.kind, "error")
check.equal(#err.others, 3)
check.equal(err.others[2].message, "first")
check.equal(err.others[3].kind, "cancelled")
local failed = flow.failed "only"
err = flow.when_any_succeeds({ failed }).error
check.equal(err.others[1], failed.error)
check.equal(flow.when_any_succeeds({ flow.cancelled(), flow.cancelled() }).state, "cancelled")
local TimingOp = flow.op("TimingOp", { timeout = 1, run = function() flow.sleep(5) end })
err = check.raises(function() flow.when_any_succeeds({ TimingOp:start(), TimingOp:start() }):await() end, "timed out")
check.equal(err.kind, "timeout")
local many = {}
for i = 1, 1000 do many[i] = fails(1, "no " .. i) end
err = check.raises(function() flow.when_any_succeeds(many):await() end, "no 5; and 995 more")
check.equal(#err.others, 1000)

-- Programs and runs take part.
check.equal(flow.when_any_succeeds({ flow.exec { "false" }, flow.exec { "true" } }):await().status, 0)

-- Misuse.
local function misuse(what, ...) check.usage(what, "when_any_succeeds", ...) end
misuse(function() flow.when_any_succeeds() end, "#1", "list of tasks expected, got no value")
misuse(function() flow.when_any_succeeds {} end, "#1", "empty list")
misuse(function() flow.when_any_succeeds { slow, 1 } end, "#1", "element 2: task expected, got number")
misuse(function() flow.when_any_succeeds { slow, x = slow } end, "#1", "list of tasks expected")
misuse(function() flow.when_any_succeeds({ slow }, true) end, "#2", "table expected, got boolean")
misuse(function() flow.when_any_succeeds({ slow }, { cancel = 1 }) end, "#2", "field 'cancel': boolean expected, got number")
misuse(function() flow.when_any_succeeds({ slow }, { cancels = true }) end, "unknown field 'cancels'", "'cancel'")
