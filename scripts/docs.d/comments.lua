-- Compiles the Swift snippets of documentation comments. Each is a function with a file of its
-- own, so that snippets may declare the same names; `names.swift` has what they use and don't
-- show. An ellipsis is code that isn't shown.
local flow = require "flow"
local comments = {}

local form = [[
import FlowEngine
import FlowHTTP
import FlowScripting
import Foundation
import LuaVM
func snippet%d() async throws {
#sourceLocation(file: %q, line: %d)
%s
}
]]

-- The snippets of a Swift file: each a list of lines, with the number of its first line.
function comments.read(path)
  local list, open, number = {}, nil, 0
  for line in io.lines(path) do
    number = number + 1
    local text = line:match "^%s*/// ?(.*)$"
    if open and text and text:find "^```" then
      list[#list + 1] = open
      open = nil
    elseif open then
      assert(text, path .. ": a snippet of a comment without an end")
      open[#open + 1] = text
    elseif text == "```swift" then
      open = { first = number + 1 }
    end
  end
  return list
end

-- Reports the snippets that don't compile; returns the number of all. `names` is the path of what
-- they use.
function comments.check(paths, names, folder, module_flags, report)
  flow.fs.mkdir(folder)
  local argv = {
    "swiftc", "-typecheck", "-swift-version", "6", "-parse-as-library", "-suppress-warnings", names,
  }
  table.move(module_flags, 1, #module_flags, #argv + 1, argv)
  local count = 0
  for _, path in ipairs(paths) do
    for _, snippet in ipairs(comments.read(path)) do
      count = count + 1
      local file = ("%s/Snippet%d.swift"):format(folder, count)
      local text = table.concat(snippet, "\n"):gsub("…", "fatalError()")
      flow.fs.write(file, form:format(count, path, snippet.first, text))
      argv[#argv + 1] = file
    end
  end
  local result = flow.exec(argv, { check = false, timeout = 300 }):await()
  if result.status ~= 0 then
    local isNamed = false
    for path, line, message in result.stderr:gmatch "([^\n]-):(%d+):%d+: error: ([^\n]+)" do
      report(path, tonumber(line), "the snippet doesn't compile: " .. message)
      isNamed = true
    end
    assert(isNamed, result.stderr)
  end
  return count
end

return comments
