-- run: $DIR/17 place 3
-- run: $DIR/17 ship
-- run: $DIR/17 change 2
-- run: $DIR/17 pay
-- run: $DIR/17 pack
-- run: $DIR/17 damaged
-- run: $DIR/17 pack
-- run: $DIR/17 ship
-- run: $DIR/17 deliver
-- run: $DIR/18 place 1
-- run: $DIR/18 pay
-- run: $DIR/18 cancel
--
-- An order that takes days: a state machine that ends its process whenever it has to wait for
-- somebody, and that a later process continues where it was. Each order is a folder:
--
--   scripts/flowlua examples/order.lua orders/17 place 3    # an event: place, change, pay, pack, …
--   scripts/flowlua examples/order.lua orders/17            # continues, for example after a crash
--   scripts/flowlua --runs --store orders/17/.flowlua       # how far it is; more with --show RUN
local flow = require "flow"
local fs, on, forward, back = flow.fs, flow.on, flow.forward, flow.back

local folder, event, count = arg[1], arg[2], math.tointeger(tonumber(arg[3] or 0))
if not folder or event and not event:find "^%a+$" or (count or -1) < 0 then
  error("usage: order.lua FOLDER [EVENT [COUNT]]", 0)
end
fs.mkdir(folder)
-- First of all the event is on the disk: it isn't lost, whatever happens from here on.
if event then
  fs.write(folder .. "/events", ("%s %s\n"):format(event, count), { append = true })
end
-- The latest run of this folder that hasn't finished, or a new one.
flow.keep { store = folder .. "/.flowlua", resume = true }

-- A step that takes the next event. If there is none yet, the process ends. That only pauses the
-- run: nothing fails, nothing is undone, and the next process performs the step again.
local function waits_for(...)
  local expected = { ... }
  local names = table.concat(expected, ", ")
  return function(state, ctx)
    local number = 0
    for name, detail in fs.read(state.folder .. "/events"):gmatch "(%a+) (%d+)\n" do
      number = number + 1
      if number > state.seen then
        for _, known in ipairs(expected) do
          if name == known then
            return { event = name, count = tonumber(detail), seen = number }
          end
        end
        print(name .. ": not now")
        return { event = "unexpected", seen = number }
      end
    end
    print(table.concat(ctx.history, ", ") .. ": waits for " .. names)
    os.exit()
  end
end

-- An entry in the account of the order.
local function book(ctx, word, sign)
  local amount = ctx:get "count" * 20
  fs.write(ctx:get "folder" .. "/account", ("%s%d\n"):format(sign, amount), { append = true })
  print(("%s: %d"):format(word, amount))
end

-- An op that can't be repeated runs once. If a process is killed meanwhile, the next one asks what
-- became of it. `account` says it: answer by `--send RUN PayOp=done` or `PayOp=again`.
local PayOp = flow.op("PayOp", {
  needs = { folder = "string", count = "integer" },
  effect = "once",
  run = function(ctx)
    book(ctx, "paid", "+")
    if os.getenv "ORDER_KILL" then os.execute "kill -9 $PPID" end
  end,
  undo = function(ctx) book(ctx, "refunded", "-") end,
})

-- The failure of the machine undoes the payment.
local CancelOp = flow.op("CancelOp", function(ctx)
  ctx:fail("cancelled", { code = "cancelled" })
end)

local order = flow.machine {
  name = "order",
  start = "new",
  emit = function(result) return result.event end,
  reduce = function(state, result)
    return flow.continue {
      folder = state.folder,
      seen = result.seen or state.seen,
      count = (result.count or 0) > 0 and result.count or state.count,
    }
  end,
  flow.any_step { on("cancel", forward "cancelled"), on("unexpected", flow.stay()) },
  flow.step("new", { run = waits_for "place", on("place", forward "placed") }),
  flow.step("placed", {
    run = waits_for("pay", "change", "cancel"),
    on("pay", forward "payment"),
    on("change", flow.stay()),
  }),
  flow.step("payment", { run = PayOp, flow.next(forward "paid") }),
  flow.step("paid", { run = waits_for("pack", "cancel"), on("pack", forward "packed") }),
  flow.step("packed", {
    run = waits_for("ship", "damaged", "cancel"),
    on("ship", forward "shipped"),
    on("damaged", back "paid"),
  }),
  flow.step("shipped", {
    run = waits_for("deliver", "return"),
    on("deliver", forward "delivered"),
    on("return", forward "cancelled"),
  }),
  flow.step("delivered", { run = function() return {} end, final = true }),
  flow.step("cancelled", { run = CancelOp, final = true }),
}

local run = order:run { folder = folder, seen = 0 }
if not run.ok and run.error.code ~= "cancelled" then error(tostring(run.error), 0) end
print(run.ok and "delivered: " .. run.result.count or run.error.message)
