-- A secret isn't encoded unless secrets = true asks for it; then the text is a secret, too.
local flow = require "flow"
local check = require "check"

local json = flow.json
local secret = flow.secret "open sesame"
local error = check.raises(function() json.encode { user = "ada", password = secret } end,
  "can't encode a secret at password; secrets = true")
check.equal(error.kind, "usage")
check.lacks(tostring(error), "sesame")

local text = json.encode({ password = secret, list = { flow.secret { 1, 2 } } }, { secrets = true })
check.equal(tostring(text), "<redacted>")
local seen
flow.op("LookOp", { needs = { text = "any" }, run = function(ctx) seen = ctx:get "text" end }):run { text = text }
check.equal(seen, '{"list":[[1,2]],"password":"open sesame"}')
check.equal(json.encode({ 1 }, { secrets = true }), "[1]")
check.usage(function() json.encode({ flow.secret "\xff" }, { secrets = true }) end, "encode", "isn't UTF-8 at [1]")
check.usage(function() json.decode(secret) end, "decode", "#1", "string expected, got secret")
