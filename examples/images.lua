-- Tasks: an image is fetched, scaled and made black and white, each step when the one before is
-- done. The images are tables, and the server isn't there: what counts is the order.
local flow = require "flow"

-- A function that starts something and gives a task for its result. The context is the other end:
-- the code that has it settles the task.
local function fetch_full_sized_image(url)
  local context = flow.context()
  flow.with_delay(0.01):next(function()
    local name = url:match("/image/(%w+)$")
    -- By now the task may have been cancelled: set_result would be an error then.
    if name then
      context:try_set_result { name = name, scale = 1 }
    else
      context:try_set_error("Couldn't fetch image data")
    end
  end)
  return context.task
end

local function scale_image(image, factor)
  return flow.spawn(function()
    flow.sleep(0.01)
    return { name = image.name, scale = image.scale * factor }
  end)
end

local function convert_image_to_black_and_white(image)
  return flow.spawn(function()
    flow.sleep(0.01)
    return { name = image.name, scale = image.scale, colours = 2 }
  end)
end

local function show(image)
  print(("%s at %g%s"):format(
    image.name, image.scale, image.colours == 2 and ", black and white" or ""))
end

-- A chain continues only while the steps succeed.
local chain = fetch_full_sized_image("http://yoursite.com/image/full")
  :next_on_success(function(image) return scale_image(image, 0.5) end)
  :next_on_success(convert_image_to_black_and_white)
  :finally_on_success(show)
chain:wait()

-- An optional step: next runs in any case, and gets the task.
local placeholder = { name = "placeholder", scale = 1 }
fetch_full_sized_image("http://yoursite.com/nothing")
  :next(function(task) return scale_image(task.result or placeholder, 0.5) end)
  :next_on_success(convert_image_to_black_and_white)
  :finally_on_success(show)
  :wait()

-- How a task has ended.
local function tell(task)
  if task.faulted then
    print("Error: " .. tostring(task.error))
  elseif task.cancelled then
    print "task was cancelled"
  else
    show(task.result)
  end
end
local failing = fetch_full_sized_image("http://yoursite.com/nothing")
local cancelled = fetch_full_sized_image("http://yoursite.com/image/full")
cancelled:cancel()
local small = fetch_full_sized_image("http://yoursite.com/image/small")
for _, task in ipairs { failing, cancelled, small } do
  task:next(tell):await()
end

-- Where a continuation runs: posted to the main loop, it comes after what runs now.
local task = flow.resolved(placeholder):next_on_success(show, { thread = "main" })
print "before"
task:await()

-- Several at the same time.
local one = fetch_full_sized_image("http://yoursite.com/image/one")
local two = flow.with_delay(0.02):next(function()
  return fetch_full_sized_image("http://yoursite.com/image/two")
end)
local three = fetch_full_sized_image("http://yoursite.com/image/three")
local first = flow.when_any_finish { two, one }
print("the first:", first:await().name, "number " .. first.index)
for _, image in ipairs(flow.when_all_succeed({ one, two, three }):await()) do show(image) end
local outcomes = flow.when_all_finish({ one, failing, cancelled }):await()
for i = 1, outcomes.n do
  print(i, outcomes[i] and outcomes[i].name or tostring(outcomes.errors[i]))
end
