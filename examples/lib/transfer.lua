-- FlowKit's example: a money transfer as a state machine. `ask(question, choices)` is how it asks.
local flow = require "flow"
local on, forward, back = flow.on, flow.forward, flow.back

local TariffOp = flow.op("TariffOp", {
  doc = "Looks up what the transfer costs.",
  run = function(ctx)
    flow.sleep(0.01) -- a server that isn't there
    ctx:set("fee", ctx:get("tariff", "string") == "express" and 5 or 1)
  end,
})

return function(ask)
  return flow.machine {
    name = "transfer",
    start = "amount",
    -- Which way to go: an event, or nothing special.
    emit = function(result)
      if not result then return nil end
      if result.amount and result.amount < 100 then return "invalidAmount" end
      return result.choice
    end,
    -- The state has what is known so far: the answers of all steps.
    reduce = function(state, result)
      local known = {}
      for key, value in pairs(state) do known[key] = value end
      for key, value in pairs(result or {}) do known[key] = value end
      known.choice = nil
      return flow.continue(known)
    end,
    flow.any_step { on("error", forward "alert") },
    flow.step("amount", {
      run = function(state)
        local amount = tonumber(ask("How much do you send to " .. state.country .. "?"))
        return amount and { amount = amount } or { choice = "error" }
      end,
      on("invalidAmount", forward "invalidAmount"),
      flow.next(forward "tariff"),
    }),
    flow.step("invalidAmount", {
      run = function(state) print(("%g is too little: at least 100"):format(state.amount)) end,
      flow.next(back()),
    }),
    flow.step("tariff", {
      run = function() return { tariff = ask("Which tariff?", { "cheap", "express" }) } end,
      flow.next(forward "fee"),
    }),
    flow.step("fee", { run = TariffOp, flow.next(forward "confirmation") }),
    flow.step("confirmation", {
      run = function(state)
        return { choice = ask(("Send %g for %g?"):format(state.amount, state.fee),
          { "continue", "editAmount", "editTariff" }) }
      end,
      on("editAmount", back "amount"),
      on("editTariff", back "tariff"),
      on("continue", forward "success"),
    }),
    flow.step("success", {
      run = function(state) print(("%g sent to %s"):format(state.amount, state.country)) end,
    }),
    flow.step("alert", { run = function() print "That isn't a number." end, flow.next(back()) }),
  }
end
