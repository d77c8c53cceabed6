-- require "flow" always returns the same module, whatever package.path says.
package.path = ""
package.cpath = ""
local flow = require "flow"
assert(type(flow) == "table" and rawequal(flow, require "flow"))
assert(rawequal(package.loaded.flow, flow))
assert(rawget(_G, "flow") == nil)
for _, name in ipairs { "op", "new", "dispatcher", "sleep", "now" } do
  assert(type(flow[name]) == "function", name)
end
