-- Starts to count the instructions of a command, and returns a function that waits for the number:
-- two counts take the time of one.
local here = arg[0]:match("^(.*)/")

return function(...)
  local command = ("'%s/instructions' '%s'"):format(here, table.concat({ ... }, "' '"))
  local pipe = assert(io.popen(command, "r"))
  return function()
    local number = pipe:read "n"
    if not pipe:close() or not number then error("failed: " .. command, 0) end
    return number
  end
end
