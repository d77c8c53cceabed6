-- A missing script or a folder in its place is an error with the message of lua5.4.
local host = require "host"
host.same_arguments { "/no/such/script.lua" }
host.same_arguments { "no-such-script" }
host.same_arguments { "/" }
host.same_arguments { "/tmp", "argument" }
