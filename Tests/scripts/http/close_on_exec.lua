-- Programs that are started while requests are pending don't inherit their sockets.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()

local tasks = {}
for i = 1, 5 do tasks[i] = flow.http(server:url("/never", { id = "held" })) end
local stream = flow.http { url = server:url "/endless", stream = true }:await()
servers.eventually(function() return #server:requests "held" == 5 end, "five requests")

-- The sockets of connections; libcurl's pair of sockets, with which it wakes itself, is of no use to anybody else.
local list = [[
  connections=$(awk '{ print $10 }' /proc/net/tcp)
  for number in /proc/self/fd/*; do
    link=$(readlink $number)
    case $link in
      socket:*) echo "$connections" | grep -x "$(echo $link | tr -dc 0-9)" ;;
      *event*) echo $link ;;
    esac
  done
  echo "of $(echo "$connections" | wc -l)"
]]
check.contains(flow.exec { "sh", "-c", list }:await().stdout, "of ")
check.equal(flow.exec { "sh", "-c", list }:await().stdout:match "^(.-)of %d+\n$", "")
local pipe <close> = io.popen(list)
check.equal(pipe:read "a":match "^(.-)of %d+\n$", "")
for _, task in ipairs(tasks) do task:cancel() end
stream:close()
