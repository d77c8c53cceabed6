-- Runs attacks: scripts that flowlua has to refuse, to stop or to survive.
local flow, host = require "flow", require "host"
local attack = {}

-- An attack that hangs is a failure after these seconds. A busy machine or a sanitizer makes it many times slower.
local PATIENCE = 120

-- Starts flowlua with these words, by a shell that writes no core files. Its input stays open.
local function start(words, shell)
  shell = "ulimit -c 0; " .. (shell or "exec \"$@\"")
  return flow.exec({ "bash", "-c", shell, "bash", host.binary, table.unpack(words) },
    { check = false, timeout = PATIENCE, stdin = "pipe" })
end

-- Runs attacks, a few at a time, and raises one error that names each that failed.
--
-- An attack is { NUMBER, SENTENCE, SCRIPT }, with `options` instead of those of all attacks, `expect` instead of
-- the one of all, a function that gets status, stdout and stderr, and `shell`, a command that starts "$@".
function attack.all(attacks, options, expect, concurrency)
  local failures = {}
  local function try(each)
    local words = { table.unpack(each.options or options) }
    table.move({ "-e", each[3] }, 1, 2, #words + 1, words)
    local program <close> = start(words, each.shell)
    program:wait()
    if program.error then error(program.error, 0) end
    local result = program.result
    local ok, problem = pcall(each.expect or expect, result)
    if not ok then
      error(("%s\n   status %d, stderr: %s"):format(problem, result.status, result.stderr:sub(1, 400)), 0)
    end
  end
  local AttackOp = flow.op("AttackOp", { needs = { attack = "table" }, run = function(ctx)
    local each = ctx:get "attack"
    local ok, problem = pcall(try, each)
    if not ok then failures[#failures + 1] = ("%s. %s: %s"):format(each[1], each[2], problem) end
  end })
  local run = flow.new("attacks"):data { attacks = attacks }
    :add_grouped(AttackOp, flow.dispatcher { input = "attacks", as = "attack", max_concurrent = concurrency }):run()
  if not run.ok then error(run.error) end
  table.sort(failures)
  if #failures > 0 then
    error(("%d of %d attacks:\n%s"):format(#failures, #attacks, table.concat(failures, "\n")), 2)
  end
end

return attack
