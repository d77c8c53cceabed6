-- A mistake in a request is an error at the script's line, before anything is sent.
local flow, check = require "flow", require "check"

local function bad(request, ...) check.usage(function() flow.http(request) end, "flow.http", ...) end
local url = "http://127.0.0.1:1/"
bad(nil, "string or table")
bad("ftp://a/b", "ftp")
bad("nothing", "http://")
bad({}, "url")
bad({ url = url, bdy = "x" }, "did you mean 'body'")
bad({ url = url, method = "A\nB" }, "method")
bad({ url = url, headers = { ["A\r\n"] = "b" } }, "headers")
bad({ url = url, headers = { A = "b\r\nC: d" } }, "headers", "'A'")
bad({ url = url, body = "a", json = 1 }, "body", "json")
bad({ url = url, resume = true }, "resume", "save")
bad({ url = url, json = print }, "json", "function")
check.usage(function() flow.http.get(url, { method = "PUT" }) end, "flow.http.get", "method")
check.usage(function() flow.http.client { rate = 0 } end, "flow.http.client", "rate")
check.usage(function() flow.ops.HTTPOp { url = "http://a/{" } end, "HTTPOp", "url")
-- A whole URL may be the first that a client is asked for, before anything has used libcurl.
local host = require "host"
local first = host.script [[
  local flow = require "flow"
  local task = flow.http.client { base = "http://127.0.0.1:1" } "http://127.0.0.1:2/x"
  task:wait()
  print(task.error.kind)
]]
check.equal(first.stderr, "")
check.equal(first.stdout, "network\n")
-- Users, passwords and values of the query aren't shown.
local _, error = pcall(flow.http, "http://user:pass-word@a b/?key=val-ue")
check.lacks(tostring(error), "pass-word", "val-ue")
