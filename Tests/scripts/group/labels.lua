-- The label of an item stands after its index in lines, paths, events and errors, on any thread.
local flow, check = require "flow", require "check"

local function upload(thread, retry)
  return flow.op("UploadOp", {
    thread = thread, retry = retry, needs = { image = "any" }, gives = { name = "string" },
    run = function(ctx)
      ctx:log("as " .. ctx.name)
      local item = ctx:get "image"
      if item == "bad.png" then error("no such image", 0) end
      ctx:set("name", ctx.name)
    end,
  })
end

local function start(op, label, items, options)
  options = options or {}
  options.input, options.label, options.output = "images", label, "names"
  options.max_concurrent = 1
  return flow.new("publish"):add_grouped(op, options):run { images = items }
end

for _, op in ipairs {
  upload(), upload("worker"), upload("worker", 2), flow.wrap(upload(), function(_, run) return run() end),
} do
  -- Texts and numbers are their own labels; the field of a table is its label.
  local run = start(op, "file", { "cat.png", 12, { file = "dog.png" }, { other = 1 }, { file = {} } })
  assert(run.ok, run.error)
  check.same(run.data.names, {
    "UploadOp #1 cat.png", "UploadOp #2 12", "UploadOp #3 dog.png", "UploadOp #4", "UploadOp #5",
  })
  check.contains(run:summary(), "[UploadOp #1 cat.png] WillStart\n",
    "[UploadOp #3 dog.png] as UploadOp #3 dog.png\n",
    "[UploadOp #3 dog.png] DidFinish: successfully\n", "[UploadOp #4] WillStart\n")
  local labels, paths = {}, {}
  for _, event in ipairs(run:events()) do
    if event.kind == "start" and event.index and event.path:find("^publish/[^/]*$") then
      check.equal(event.op, "UploadOp")
      labels[event.index], paths[event.index] = event.label or false, event.path
    end
  end
  check.same(labels, { "cat.png", "12", "dog.png", false, false })
  check.equal(paths[3], "publish/UploadOp #3 dog.png")
  check.equal(paths[4], "publish/UploadOp #4")

  run = start(op, "file", { "bad.png" })
  check.equal(run.error.op, "UploadOp #1 bad.png")
  check.contains(run.error.path, "publish/UploadOp #1 bad.png")
  check.contains(tostring(run.error), "UploadOp #1 bad.png] no such image")
end

-- An op in a flow that is executed for each item has the label in its path.
local Inner = flow.new("album"):add(flow.op("CountOp", { needs = { image = "any" },
  run = function(ctx) error("failed " .. ctx.name, 0) end }))
local run = flow.new("publish")
  :add_grouped(Inner, { input = "images", as = "image", label = function(item) return item.n .. "!" end })
  :run { images = { { n = 4 } } }
check.equal(run.error.path, "publish/album #1 4!/CountOp")

-- A function returns a label or nil; its error is the script's, and no item starts.
local Op = upload()
run = start(Op, function(item) return item ~= "b" and item .. "?" or nil end, { "a", "b" })
check.same(run.data.names, { "UploadOp #1 a?", "UploadOp #2" })
for _, bad in ipairs {
  { function(item) return item.a.b end, "labels.lua:", "attempt to index a nil value" },
  { function() error { code = 7 } end, "(error object is a table value: {code = 7})" },
  { function() return {} end, "labels.lua:67: bad result", "'label'", "string or nil expected, got table" },
  { function() return true end, "'label'", "got boolean" },
} do
  run = start(Op, bad[1], { {} })
  check.equal(run.ok, false)
  check.equal(run.error.op, "Group")
  check.contains(tostring(run.error), table.unpack(bad, 2))
  check.lacks(run:summary(), "UploadOp")
end
check.usage(function() flow.dispatcher { input = "images", label = 5 } end,
  "'dispatcher'", "field 'label'", "string or function expected, got number")
check.equal(flow.dispatcher { input = "images", label = "file" }.label, "file")
check.equal(flow.dispatcher { input = "images" }.label, nil)

-- A label stays on its line, whatever its bytes are, and is short.
local function label_of(text)
  local item = start(Op, function() return text end, { 1 })
  return (item.data.names[1]:gsub("^UploadOp #1 ?", ""))
end
check.equal(label_of "", "")
check.equal(label_of "a\nb\tc\r\0\27[31m\127", [[a\nb\tc\r\x00\x1B[31m\x7F]])
check.equal(label_of "a\xff\xc3", [[a\xFF\xC3]])
check.equal(label_of "ab\u{202E}gnp.exe \u{2028}\u{85}", [[ab\u{202E}gnp.exe \u{2028}\u{85}]])
check.equal(label_of "\u{1F468}\u{200D}\u{1F469} né", "\u{1F468}\u{200D}\u{1F469} né")
check.equal(label_of(("x"):rep(40)), ("x"):rep(40))
check.equal(label_of(("x"):rep(10000)), ("x"):rep(39) .. "…")
check.equal(label_of(("\n"):rep(10000)), ("\\n"):rep(19) .. "\\…")
check.equal(label_of([["quoted" `x` | <b>]]), [["quoted" `x` | <b>]])

-- No secret occurs in a label, not even a part of one that is cut.
local key = "hunter2-" .. ("s3cret"):rep(5)
for _, text in ipairs { key, ("x"):rep(20) .. key, "\n" .. key } do
  run = flow.new("secrets"):data { key = flow.secret(key) }
    :add_grouped(Op, { input = "images", label = function() return text end })
    :run { images = { 1 } }
  check.contains(run:summary(), "<redacted>")
  check.lacks(run:summary(), "hunter2", "s3cret")
  for _, event in ipairs(run:events()) do check.lacks(event.path .. (event.label or ""), "hunter") end
end
run = start(Op, "file", { { file = flow.secret(key) } })
check.contains(run:summary(), "[UploadOp #1 <redacted>]")
run = start(Op, "file", flow.secret { "abc", "def" })
check.contains(run:summary(), "[UploadOp #1] WillStart")
