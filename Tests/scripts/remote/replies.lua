-- A script replies to each question of a node, also when it ends at once after the last op, or has no time then.
-- clock: real: other processes execute the ops
-- python: nats
local check, nats, remote = require "check", require "nats", require "remote"

local server <close> = remote.server()
local client <close> = nats.client(server.url)
server:join "m1"
client:listen { subject = "flowlua.ask.*" }
client:listen { subject = "_INBOX.>" }
for _, after in ipairs { "", "", "os.execute 'sleep 1.5'" } do
  local result = server:run([[
    local Op = flow.op("WorkOp", { gives = { r = "integer" }, thread = "remote", run = function(ctx) ctx:set("r", 1) end })
    local chain = flow.new "chain"
    for _ = 1, 10 do chain:add(Op) end
    local ended = chain:run()
    print(ended.ok, ended.error, ended.data.r)
  ]] .. after)
  check.equal(result.stderr, "")
  check.equal(result.stdout, "true\tnil\t1\n")
end

local questions, replies = {}, {}
for _, message in ipairs(client:heard {}.messages) do
  if message.subject:find "^flowlua%.ask%." then
    questions[#questions + 1] = message.reply
  else
    replies[message.subject] = (replies[message.subject] or 0) + 1
  end
end
-- Each node asks whether the script is there, and passes the reports.
check.equal(#questions > 30, true)
for _, subject in ipairs(questions) do check.equal(replies[subject], 1) end
-- After a second without a reply the node would have had the server store its report.
check.equal(client:stream { name = "FLOWLUA_NEWS" }.state.last_seq, 0)
