-- Floors and circles of files, whatever language the files are in.
local graph = {}

-- Reads a plan. Its lines are comments (`#`), the settings `folder PATH`, `language NAME`,
-- `circle NUMBER` (how many files may use each other in a circle) and `contract NAME …` (what a
-- lower floor may use of a higher one), `floor NAME`, and the files of that floor; `NAME/` means
-- all files in that folder. The lowest floor is the first.
function graph.parse_plan(text, name)
  local plan = {
    name = name, circle = 1, contract = {}, floors = {}, floor_of = {}, floor_of_folder = {},
  }
  local number = 0
  for line in text:gmatch "([^\n]*)\n?" do
    number = number + 1
    line = line:gsub("#.*", "")
    local word, rest = line:match "^(%S+)%s+(.-)%s*$"
    if word == "folder" or word == "language" then
      plan[word] = rest
    elseif word == "circle" then
      plan.circle = assert(math.tointeger(rest), "no number of files: " .. rest)
    elseif word == "contract" then
      for each in rest:gmatch "%S+" do plan.contract[each] = true end
    elseif word == "floor" then
      plan.floors[#plan.floors + 1] = rest
    elseif line:find "^%s+%S" and #plan.floors > 0 then
      for path in line:gmatch "%S+" do
        if plan.floor_of[path] then
          error(("%s:%d: %s already has a floor"):format(name, number, path), 0)
        end
        local floors = path:find "/$" and plan.floor_of_folder or plan.floor_of
        floors[path] = #plan.floors
      end
    elseif line:find "%S" then
      error(("%s:%d: neither a setting nor files of a floor: %s"):format(name, number, line), 0)
    end
  end
  for _, setting in ipairs { "folder", "language" } do
    if not plan[setting] then error(("%s: it doesn't say its %s"):format(name, setting), 0) end
  end
  return plan
end

-- Gives the files of folders their floors.
local function spread_folders(plan, paths)
  local is_used = {}
  for _, path in ipairs(paths) do
    local folder = path
    repeat
      folder = folder:match "^(.*/)[^/]+/?$"
      if folder and plan.floor_of_folder[folder] then
        plan.floor_of[path] = plan.floor_of[path] or plan.floor_of_folder[folder]
        is_used[folder] = true
      end
    until not folder
  end
  for folder in pairs(plan.floor_of_folder) do
    -- Reported as a file that isn't there.
    if not is_used[folder] then plan.floor_of[folder] = plan.floor_of_folder[folder] end
  end
end

function graph.read_plan(path)
  local file <close> = assert(io.open(path))
  return graph.parse_plan(file:read "a", path)
end

-- The circles among uses: lists of files that use each other, directly or through others, each list
-- sorted. (Tarjan's strongly connected components.)
function graph.circles(uses)
  local targets, nodes = {}, {}
  local function node(path)
    if not targets[path] then
      targets[path] = {}
      nodes[#nodes + 1] = path
    end
    return targets[path]
  end
  for _, use in ipairs(uses) do
    node(use.to)
    node(use.from)[use.to] = true
  end
  table.sort(nodes)
  local index, lowest, stack, on_stack, circles, count = {}, {}, {}, {}, {}, 0
  local function visit(path)
    count = count + 1
    index[path], lowest[path], on_stack[path] = count, count, true
    stack[#stack + 1] = path
    for to in pairs(targets[path]) do
      if not index[to] then
        visit(to)
        lowest[path] = math.min(lowest[path], lowest[to])
      elseif on_stack[to] then
        lowest[path] = math.min(lowest[path], index[to])
      end
    end
    if lowest[path] ~= index[path] then return end
    local circle = {}
    repeat
      local top = table.remove(stack)
      on_stack[top] = nil
      circle[#circle + 1] = top
    until top == path
    table.sort(circle)
    if #circle > 1 then circles[#circles + 1] = circle end
  end
  for _, path in ipairs(nodes) do
    if not index[path] then visit(path) end
  end
  table.sort(circles, function(a, b) return a[1] < b[1] end)
  return circles
end

function graph.describe_circles(circles)
  if #circles == 0 then return "no circle" end
  local texts = {}
  for i, circle in ipairs(circles) do texts[i] = table.concat(circle, " and ") end
  return ("%d %s (%s)"):format(
    #circles, #circles == 1 and "circle" or "circles", table.concat(texts, "; "))
end

-- The uses among the files of a circle, one for each pair of files.
local function uses_within(circle, uses)
  local members, seen, texts = {}, {}, {}
  for _, path in ipairs(circle) do members[path] = true end
  for _, use in ipairs(uses) do
    local pair = use.from .. "\0" .. use.to
    if members[use.from] and members[use.to] and not seen[pair] then
      seen[pair] = true
      texts[#texts + 1] = ("%s:%d uses '%s' of %s"):format(use.from, use.line, use.name, use.to)
    end
  end
  return texts
end

-- Compares files and their uses with a plan; returns what is wrong, as texts.
function graph.check(plan, paths, uses)
  local problems = {}
  local function report(...) problems[#problems + 1] = string.format(...) end
  spread_folders(plan, paths)
  local is_there = {}
  for _, path in ipairs(paths) do
    is_there[path] = true
    if not plan.floor_of[path] then
      report("%s/%s:1: no floor of %s lists this file", plan.folder, path, plan.name)
    end
  end
  local gone = {}
  for path in pairs(plan.floor_of) do
    if not is_there[path] then gone[#gone + 1] = path end
  end
  table.sort(gone)
  for _, path in ipairs(gone) do report("%s: %s isn't there", plan.name, path) end
  for _, use in ipairs(uses) do
    local from, to = plan.floor_of[use.from], plan.floor_of[use.to]
    if from and to and from < to and not plan.contract[use.name] then
      report("%s/%s:%d: '%s' is of %s, on the floor '%s' above the floor '%s'", plan.folder,
        use.from, use.line, use.name, use.to, plan.floors[to], plan.floors[from])
    end
  end
  for _, circle in ipairs(graph.circles(uses)) do
    if #circle > plan.circle then
      report("%s: a circle of %d files, of at most %d:\n  %s", plan.folder, #circle, plan.circle,
        table.concat(uses_within(circle, uses), "\n  "))
    end
  end
  return problems
end

return graph
