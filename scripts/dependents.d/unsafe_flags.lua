-- Names a target of a library that has unsafe flags: no package could depend on it by a version.
--
--   swift package dump-package | lua5.4 unsafe_flags.lua
package.path = "examples/lib/?.lua;" .. package.path
local manifest = require "json".decode(io.read "a")

local targets, isSeen = {}, {}
for _, target in ipairs(manifest.targets) do targets[target.name] = target end

local function check(name)
  local target = targets[name]
  if isSeen[name] or not target then return end
  isSeen[name] = true
  for _, setting in ipairs(target.settings) do
    assert(not setting.kind.unsafeFlags, name .. " has unsafe flags")
  end
  for _, dependency in ipairs(target.dependencies) do check(dependency.byName[1]) end
end

for _, product in ipairs(manifest.products) do
  for _, name in ipairs(product.type.library and product.targets or {}) do check(name) end
end
assert(next(isSeen), "the manifest has no libraries")
