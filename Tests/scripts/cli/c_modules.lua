-- Installed C modules of Debian load, and their coroutines work.
local host = require "host"
for name, text in pairs {
  lpeg = "print(m.match(m.C(m.R('az')^1), 'abc1'), m.version)",
  cjson = "print(m.encode { 1, 2, 'x' }, m.decode('[1,{\"a\":null}]')[2].a)",
  socket = "print(type(m.gettime()), m.dns.toip '127.0.0.1')",
  luv = "local t = m.new_timer() t:start(1, 0, function() print 'fired' t:close() end) m.run()",
  lfs = "print(m.attributes('/', 'mode'), type(m.currentdir()))",
  cqueues = "local q = m.new() q:wrap(function() m.sleep(0.001) print 'awake' end) print(q:loop())",
} do
  if host.run("lua5.4", { "-l", name }).status == 0 then
    host.same_script(("local m = require '%s' %s"):format(name, text))
    host.same_script(("require 'coroutine' local m = require '%s' coroutine.wrap(function() %s end)()")
      :format(name, text))
  end
end
