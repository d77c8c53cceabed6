-- Counts the public Swift declarations, lists them, and names those without documentation.
local json = require "json"
local symbols = {}

-- `FlowEngine Run.wait(): @discardableResult func wait() throws(FlowError) -> DataBucket`.
local function line_of(module, path, symbol)
  local parts = {}
  for _, part in ipairs(symbol.declarationFragments) do parts[#parts + 1] = part.spelling end
  return ("%s %s: %s"):format(module, path, (table.concat(parts):gsub("%s+", " ")))
end

-- Returns the number of declarations of each module, the number of all that are documented, and
-- what is public: `names`, the paths of all declarations without labels, `bases`, what a type
-- inherits from or conforms to, and `api`, a line for each declaration.
function symbols.check(folder, modules, report)
  local counts, documented = {}, 0
  local public = { names = {}, bases = {}, api = {} }
  for _, module in ipairs(modules) do
    local file <close> = assert(io.open(("%s/%s.symbols.json"):format(folder, module)))
    local graph = json.decode(file:read "a")
    -- `FlowEngine@FlowLoop` has what the former adds to types of the latter.
    local adding = module:match "^%w+"
    counts[adding] = counts[adding] or 0
    local paths = {}
    for _, symbol in ipairs(graph.symbols) do
      local place = symbol.location
      local id = symbol.identifier.precise
      local path = table.concat(symbol.pathComponents, ".")
      paths[id] = path
      public.names[path:gsub("%b()", "")] = true
      -- Others come from the standard library, are made for types that conform to a protocol, or
      -- are extensions.
      if place and not id:find("::SYNTHESIZED::", 1, true) and not id:find "^s:e:" then
        counts[adding] = counts[adding] + 1
        public.api[#public.api + 1] = line_of(adding, path, symbol)
        if symbol.docComment then
          documented = documented + 1
        else
          report(place.uri:match "/(Sources/.*)$" or place.uri, place.position.line + 1,
            path .. " has no documentation")
        end
      end
    end
    for _, each in ipairs(graph.relationships) do
      local path = paths[each.source]
      if path and (each.kind == "inheritsFrom" or each.kind == "conformsTo") then
        local base = paths[each.target] or (each.targetFallback or ""):match "^Flow%w+%.(.*)$"
        if base then
          public.bases[path] = public.bases[path] or {}
          public.bases[path][base] = true
        end
      end
    end
  end
  for path, bases in pairs(public.bases) do
    for base in pairs(bases) do public.api[#public.api + 1] = path .. ": " .. base end
  end
  table.sort(public.api)
  return counts, documented, public
end

return symbols
