-- Counts the public Swift declarations, lists them, and names those without documentation, and the
-- types without an example.
local json = require "json"
local symbols = {}

-- `FlowEngine Run.wait(): @discardableResult func wait() throws(FlowError) -> DataBucket`.
local function line_of(module, path, symbol)
  local parts = {}
  for _, part in ipairs(symbol.declarationFragments) do parts[#parts + 1] = part.spelling end
  return ("%s %s: %s"):format(module, path, (table.concat(parts):gsub("%s+", " ")))
end

-- Whether programs use a type without its name: lists in braces and loops are written with them,
-- and errors of the system are thrown.
local function is_unnamed(path, declaration)
  return path:find "^SystemError" or declaration:find("@resultBuilder", 1, true)
    or path:find "Iterator$" or path:find "StringInterpolation$"
end

local kinds = {
  ["swift.class"] = true, ["swift.struct"] = true, ["swift.enum"] = true, ["swift.protocol"] = true,
}

-- The code in a documentation comment.
local function code_of(symbol)
  local lines, is_code = {}, false
  for _, line in ipairs(symbol.docComment and symbol.docComment.lines or {}) do
    if line.text:find "^%s*```" then
      is_code = line.text:find "^%s*```swift$" ~= nil
    elseif is_code then
      lines[#lines + 1] = line.text
    end
  end
  return table.concat(lines, "\n")
end

-- Reports the types whose comments have no example. One of the enclosing type counts if it has the
-- name of the type, or of one of its members after a dot. Returns the number of the types.
function symbols.check_examples(types, members, report)
  local paths = {}
  for path in pairs(types) do paths[#paths + 1] = path end
  table.sort(paths)
  for _, path in ipairs(paths) do
    local each, owner = types[path], types[path:match "^(.*)%." or ""]
    local found = each.code ~= "" or is_unnamed(path, each.declaration)
    if not found and owner then
      found = owner.code:find("%f[%w]" .. path:match "[^.]+$" .. "%f[^%w]")
      for _, name in ipairs(members[path] or {}) do
        found = found or owner.code:find("%f[.]%." .. name .. "%f[^%w]")
      end
    end
    if not found then report(each.file, each.line, path .. " has no example in its comment") end
  end
  return #paths
end

-- Returns the number of declarations of each module, the number of all that are documented, and
-- what is public: `names`, the paths of all declarations without labels, `bases`, what a type
-- inherits from or conforms to, `api`, a line for each declaration, and the number of `types`.
function symbols.check(folder, modules, report)
  local counts, documented = {}, 0
  local public = { names = {}, bases = {}, api = {}, types = 0 }
  local types, members = {}, {}
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
        local declaration = line_of(adding, path, symbol)
        public.api[#public.api + 1] = declaration
        local source, line = place.uri:match "/(Sources/.*)$" or place.uri, place.position.line + 1
        if symbol.docComment then
          documented = documented + 1
        else
          report(source, line, path .. " has no documentation")
        end
        local owner, name = path:match "^(.*)%.([%w_]+)"
        if kinds[symbol.kind.identifier] then
          types[path] = {
            file = source, line = line, code = code_of(symbol), declaration = declaration,
          }
        elseif owner then
          members[owner] = members[owner] or {}
          table.insert(members[owner], name)
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
  public.types = symbols.check_examples(types, members, report)
  return counts, documented, public
end

return symbols
