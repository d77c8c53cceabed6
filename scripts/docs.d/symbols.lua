-- Counts the public Swift declarations, and names those without documentation.
local json = require "json"
local symbols = {}

function symbols.check(folder, modules, report)
  local count, documented = 0, 0
  for _, module in ipairs(modules) do
    local file <close> = assert(io.open(("%s/%s.symbols.json"):format(folder, module)))
    for _, symbol in ipairs(json.decode(file:read "a").symbols) do
      local place = symbol.location
      local id = symbol.identifier.precise
      -- Others come from the standard library, are made for types that conform to a protocol, or
      -- are extensions.
      if place and not id:find("::SYNTHESIZED::", 1, true) and not id:find "^s:e:" then
        count = count + 1
        if symbol.docComment then
          documented = documented + 1
        else
          local path = place.uri:match "/(Sources/.*)$" or place.uri
          report(path, place.position.line + 1,
            ("%s has no documentation"):format(table.concat(symbol.pathComponents, ".")))
        end
      end
    end
  end
  return count, documented
end

return symbols
