-- Options about other nodes that are wrong, or have no effect together, end with status 2 and a message that names them.
-- clock: real: other processes parse them
local check = require "check"
local host = require "host"

local server = "nats://127.0.0.1:1"

-- Runs flowlua with these options; a text is executed as its script.
local function run(options, text, environment)
  if text then return host.script(text, {}, { before = options, environment = environment }) end
  return host.run(host.binary, options, { environment = environment })
end
local function refuses(message, options, text, environment)
  local result = run(options, text, environment)
  check.equal(result.stderr, host.binary .. ": " .. message .. "\n", table.concat(options, " "))
  check.equal(result.stdout, "")
  check.equal(result.status, 2)
end

-- Tags are checked before anything else is done.
for tags, problem in pairs {
  ["a.b"] = "a tag has up to 32 letters, digits, '_' or '-', not 'a.b'",
  ["a b c d e"] = "at most 4 tags expected, got 5",
  [","] = "',' has no tag",
  [" "] = "' ' has no tag",
} do
  refuses("option '--tags': " .. problem, { "--join", server, "--tags", tags })
end

-- Neither a node that joins nor a list of nodes executes a script.
local script = "print 'executed'"
for option, words in pairs {
  ["--join"] = { "--join", server },
  ["--remote-check"] = { "--remote", server, "--remote-check" },
} do
  local problem = ("option '%s' executes no script: %s"):format(option,
    option == "--join" and "it waits for the ops of others" or "it lists nodes")
  refuses(problem, words, script)
  for _, more in ipairs {
    { "-e", script }, { "-i" }, { "-l", "flow" }, { "--keep" }, { "--resume=x" }, { "--why" }, { "--only", "A" },
    { "--timeline", "t.html" }, { "--report=r.html" }, { "--trace", "t.json" }, { "--events", "e" }, { "--summary" },
    { "--otlp=FILE" }, { "--graph", "g.svg" }, { "--virtual-clock" }, { "--check" }, { "--time-limit", "9" },
    { "--remote-timeout", "9" }, { "--remote-shared", "/data" },
  } do
    local all = table.move(more, 1, #more, #words + 1, { table.unpack(words) })
    refuses(("%s, and '%s' has no effect"):format(problem, more[1]:match "^[^=]*"), all)
  end
end
refuses("option '--join' can't be combined with '--remote-check'", { "--join", server, "--remote-check" })
refuses("option '--join' can't be combined with '--remote'", { "--join", server, "--remote", server })
-- Options that concern these do have an effect.
check.match(run({ "--remote", server, "--insecure", "--no-progress", "--remote-check" }).stderr, "127%.0%.0%.1:1: ")

-- URLs, also of flow.remote, and without their secrets.
local problems = {
  ["nats://secret@h:0"] = "the port of a URL is a number from 1 to 65535, not '0'",
  ["nats://secret@h:99999"] = "the port of a URL is a number from 1 to 65535, not '99999'",
  ["nats://secret@h,,"] = "the URLs have commas between them, and one of them is empty",
  [",nats://secret@h"] = "the URLs have commas between them, and one of them is empty",
}
for url, problem in pairs(problems) do
  refuses("option '--remote': " .. problem, { "--remote", url }, script)
  refuses("FLOWLUA_REMOTE: " .. problem, {}, script, { FLOWLUA_REMOTE = url })
  local result = run({}, ("require 'flow'.remote { url = %q }"):format(url))
  check.contains(result.stderr, "field 'url': " .. problem)
end

-- A key that is too short is no mistake of the URL.
local short = "FLOWLUA_REMOTE_KEY has 5 bytes; at least 16 are needed"
refuses(short, { "--remote", server }, script, { FLOWLUA_REMOTE_KEY = "short" })
refuses(short, { "--join", server }, nil, { FLOWLUA_REMOTE_KEY = "short" })
check.contains(
  run({}, ("require 'flow'.remote { url = %q }"):format(server), { FLOWLUA_REMOTE_KEY = "short" }).stderr,
  "bad use of 'remote' (" .. short .. ")")

-- The options set the fields of flow.remote that aren't given.
local function names(fields, ...)
  return run({ ... }, ("require 'flow'.remote { url = 'nats://10.255.0.1', %s }"):format(fields))
end
check.contains(names("").stderr, "is another computer, and the connection isn't encrypted")
check.equal(names("", "--insecure").stderr, "")
check.contains(names("insecure = false", "--insecure").stderr, "is another computer, and the connection isn't encrypted")
