-- run: BATCH_STORE=$DIR --budget 80
-- run: BATCH_STORE=$DIR --budget 1000
--
-- Sends a batch of prompts to an API that streams its answers, four at a time and at most 50 a
-- second, until a budget of tokens is used up. The next start continues: replies that are there
-- cost nothing.
local flow = require "flow"
flow.keep { resume = true, store = os.getenv "BATCH_STORE" }

local here = arg[0]:match "^(.*)/" or "."
local server <close> =
  flow.exec({ "python3", "-B", here .. "/servers/prompts.py" }, { stdin = "pipe" })
-- Settings aren't code: with another budget, or another server, nothing is asked again.
local budget, url = flow.setting "budget", flow.setting("url", server:lines()())

local AskOp = flow.op("AskOp", {
  needs = { prompt = "string" },
  gives = { answer = "table" },
  timeout = 30,
  retry = { attempts = 4, delay = 0.1, factor = 2 },
  run = function(ctx)
    local response = flow.http.post(url.value .. "/chat", {
      json = { prompt = ctx:get "prompt" }, stream = true, idempotency_key = true, idle_timeout = 5,
    }):await()
    local text, tokens = "", nil
    for event in response:events() do
      if event.data == "[DONE]" then return ctx:set("answer", { text = text, tokens = tokens }) end
      local part = flow.json.decode(event.data)
      text, tokens = text .. (part.delta or ""), part.usage or tokens
    end
    ctx:fail "the stream ended early"
  end,
})

local function spent(answers)
  local sum = 0
  for _, answer in ipairs(answers) do sum = sum + answer.tokens end
  return sum
end

local prompts = {}
for i = 1, 30 do prompts[i] = "prompt " .. i end

local ReportOp = flow.op("ReportOp", { needs = { answers = "table[]" }, run = function(ctx)
  local answers = ctx:get "answers"
  if #answers < #prompts then
    print "the budget is used up"
    os.exit()                                   -- the run isn't finished: the next start continues
  end
  for i, answer in ipairs(answers) do print(prompts[i] .. ": " .. answer.text) end
  print(spent(answers) .. " tokens")
end })

flow.main(flow.new "batch"
  :needs { budget = { "integer", "How many tokens may be used" } }
  :data { prompts = prompts }
  :will_start(function(run) budget.value = run.data.budget end)
  :add_grouped(AskOp, {
    input = "prompts", output = "answers", max_concurrent = 4, rate = { 50, per = 1 },
    stop_when = function(answers) return spent(answers) >= budget.value end,
  })
  :add(ReportOp))
