-- dot() and mermaid() draw the blueprint, and those of a run also show how each op ended.
local flow, check = require "flow", require "check"
local function nothing() end
local GreetOp = flow.op("GreetOp", nothing)
local UploadOp = flow.op("UploadOp", { needs = { image = "string" }, gives = { url = "string" }, timeout = 10,
  run = function(ctx) ctx:set("url", ctx:get "image") end })
local signup = flow.new('sign"up')
  :data { images = { "a", "b" }, plan = "free" }
  :add(GreetOp):add(GreetOp("again"), { retry = 2 })
  :case("plan", "pro"):add(flow.new("inner"):add(GreetOp))
  :case(function() return false end)
  :otherwise():add(flow.op("FreeOp", nothing))
  :combine()
  :add_grouped(UploadOp, { input = "images", output = "urls" })
  :add_parallel(GreetOp, flow.op("FailOp", function(ctx) ctx:fail("no") end))
  :add_finally(flow.op("CloseOp", nothing))

check.equal(signup:dot(), [[
digraph "sign\"up" {
  label="sign\"up";
  labelloc=t;
  node [shape=box];
  n1 [label="start", shape=oval];
  n2 [label="GreetOp"];
  n3 [label="GreetOp\nretry: 2 attempts"];
  n4 [label="Cases", shape=diamond];
  subgraph cluster_1 {
    label="inner";
    style=solid;
    n5 [label="GreetOp"];
  }
  n6 [label="FreeOp"];
  subgraph cluster_2 {
    label="images -> urls\nmax_concurrent = 3";
    style=dashed;
    n7 [label="UploadOp\ntimeout: 10s"];
  }
  subgraph cluster_3 {
    label="parallel";
    style=dashed;
    n8 [label="fork", shape=hexagon];
    n9 [label="GreetOp"];
    n10 [label="FailOp"];
    n11 [label="join", shape=hexagon];
  }
  subgraph cluster_4 {
    label="finally";
    style=dashed;
    n12 [label="CloseOp"];
  }
  n13 [label="end", shape=oval];
  n1 -> n2;
  n2 -> n3;
  n3 -> n4;
  n4 -> n5 [label="plan = pro"];
  n4 -> n6 [label="otherwise"];
  n5 -> n7;
  n4 -> n7 [label="predicate"];
  n6 -> n7;
  n7 -> n8;
  n8 -> n9;
  n8 -> n10;
  n9 -> n11;
  n10 -> n11;
  n11 -> n12 [style=dashed];
  n12 -> n13;
}
]])
check.equal(flow.new("a]b"):case("k", "v;#"):add(GreetOp):combine():mermaid(), [[
flowchart TD
  n1(["start"])
  n2{"Cases"}
  n3["GreetOp"]
  n4(["end"])
  n1 --> n2
  n2 -->|"k = v#59;#35;"| n3
  n3 --> n4
  n2 -->|"no case matches"| n4
]])

local run = signup:start()
run:wait()
check.equal(run.ok, false)
local text = run:dot():gsub("in [%d.e-]+s", "in Ts")
check.contains(text, [[n2 [label="GreetOp\nsucceeded in Ts", style=filled, fillcolor=palegreen];]],
  [[n4 [label="Cases\notherwise", shape=diamond, style=filled, fillcolor=palegreen];]],
  [[label="inner\nnot reached";]], [[n5 [label="GreetOp\nnot reached", style=dashed, fontcolor=gray40];]],
  [[n7 [label="UploadOp\ntimeout: 10s\n2 succeeded in Ts (median)", style=filled, fillcolor=palegreen];]],
  [[n10 [label="FailOp\nfailed in Ts", style=filled, fillcolor=lightcoral];]],
  [[n13 [label="end\nfailed in Ts", shape=oval, style=filled, fillcolor=lightcoral];]],
  "n11 -> n12 [style=dashed];\n")
check.equal(text:match "}\n*$", "}\n")

-- A pending run, and one of an op alone.
local slow = flow.op("SlowOp", function() flow.sleep(60) end)
flow.op("OuterOp", function()
  local pending = slow:start()
  check.contains(pending:dot(), [[n2 [label="SlowOp\nrunning", style=filled, fillcolor=lightblue];]])
end):run()
check.contains(GreetOp:run():dot(), [[n2 [label="GreetOp\nsucceeded in ]])

-- Of a pending group: items that wait for their next attempt aren't shown as running, and a group whose next
-- items wait for their turn isn't shown as ended.
local TryOp = flow.op("TryOp", { needs = { n = "integer" }, retry = { attempts = 2, delay = 10 },
  run = function(ctx)
    flow.sleep(1)
    if ctx:get "n" == 2 and ctx.attempt == 1 then ctx:fail "once" end
  end })
local group = flow.new("group"):data { list = { 1, 2, 3, 4 } }
  :add_grouped(TryOp, { input = "list", max_concurrent = 3, rate = { 3, per = 5 } }):start()
flow.sleep(0.5)
check.contains(group:dot(), "3 running", [[rate = 3 per 5s\nrunning";]])
flow.sleep(1)
check.contains(group:dot(), "2 succeeded, 1 waiting for the next attempt", [[rate = 3 per 5s\nrunning";]])
check.lacks(group:dot(), "1 running")
flow.sleep(4)
check.contains(group:dot(), "2 succeeded, 1 running, 1 waiting for the next attempt")
flow.sleep(1)
check.contains(group:dot(), "3 succeeded, 1 waiting for the next attempt")
group:wait()
check.contains(group:dot(), "4 succeeded in ", "4 items in ")
local alone = flow.op("AloneOp", { retry = { attempts = 2, delay = 10 }, run = function(ctx)
  if ctx.attempt == 1 then ctx:fail "once" end
end }):start()
check.contains(alone:dot(), [[AloneOp\n]], "waiting for its next attempt")
alone:cancel()

-- Bytes that are no text, in names of all kinds.
for _, name in ipairs { "\xff\0\x1b", "a\nb", "graph", "end", "é" } do
  local blueprint = flow.new(name):add(flow.op(name, nothing)):case(name, name)
  for _, graph in ipairs { blueprint:dot(), blueprint:mermaid(), blueprint:run():dot() } do
    assert(utf8.len(graph) and not graph:find "[\0-\9\11-\31]", graph)
    check.equal(graph:match "\n*$", "\n")
  end
end

-- Depth is no matter.
local deep = flow.new("deep"):add(GreetOp)
for _ = 1, 10000 do deep = flow.new("deep"):add(deep) end
check.equal(select(2, deep:dot():gsub("subgraph", "")), 10000)
check.equal(select(2, deep:mermaid():gsub("subgraph", "")), 10000)
check.equal(#deep:check(), 0)
check.equal(select(2, deep:run():dot():gsub("succeeded", "")), 10002)

check.usage(function() signup.dot() end, "dot", "flow expected, got no value")
check.usage(function() signup.mermaid(run) end, "mermaid", "flow expected, got run")
check.usage(function() run.dot(signup) end, "dot", "run expected, got flow")
