import Glibc
@_spi(Scripting) import LuaVM
import Testing

/// Busy scripts that try to continue beyond a deadline.
@Suite("Stops of Lua code", .serialized)
struct StoppingTests {
  static let millisecond: Int64 = 1_000_000

  static let hostile: [(name: String, body: String)] = [
    ("loop", "while true do end"),
    ("pcall", "while true do pcall(function() while true do end end) end"),
    ("coroutine", "while true do coroutine.wrap(function() while true do end end)() end"),
    (
      "pcall around a coroutine",
      "while true do pcall(coroutine.wrap(function() while true do end end)) end"
    ),
    (
      "resuming an old coroutine",
      """
      local co = coroutine.create(function()
        while true do pcall(function() while true do end end) coroutine.yield() end
      end)
      while true do coroutine.resume(co) end
      """
    ),
    (
      "many short coroutines",
      "while true do pcall(coroutine.wrap(function() for i = 1, 100 do end end)) end"
    ),
    (
      "message handler",
      "while true do xpcall(function() while true do end end, function() while true do end end) end"
    ),
    (
      "debug.sethook as message handler",
      "while true do xpcall(function() while true do end end, debug.sethook) end"
    ),
    (
      "__close",
      """
      while true do
        pcall(function()
          local c <close> = setmetatable({}, {__close = function() while true do end end})
          while true do end
        end)
      end
      """
    ),
    (
      "__close in an inner coroutine",
      """
      while true do
        pcall(coroutine.wrap(function()
          local c <close> = setmetatable({}, {__close = function() while true do end end})
          while true do end
        end))
      end
      """
    ),
    (
      "__close that catches",
      """
      local c <close> = setmetatable({}, {__close = function()
        while true do pcall(function() while true do end end) end
      end})
      while true do end
      """
    ),
    (
      "coroutine.close with a looping __close",
      """
      while true do
        local co = coroutine.create(function()
          local c <close> = setmetatable({}, {__close = function() while true do end end})
          coroutine.yield()
        end)
        coroutine.resume(co)
        pcall(coroutine.close, co)
      end
      """
    ),
    (
      "taking the hook away",
      "while true do pcall(function() while true do debug.sethook() end end) end"
    ),
    (
      "a hook of the script",
      "debug.sethook(function() end, '', 100) while true do pcall(function() while true do end end) end"
    ),
    (
      "sort",
      "while true do pcall(table.sort, {3, 2, 1, 5, 4}, function(a, b) return a < b end) end"
    ),
    ("gsub", "while true do pcall(string.gsub, ('x'):rep(1000), '.', function() end) end"),
    (
      "metamethod",
      """
      local t = setmetatable({}, {__index = function() while true do end end})
      while true do pcall(function() return t.x end) end
      """
    ),
    ("tail calls", "local function f() return f() end while true do pcall(f) end"),
    ("goto", "::a:: pcall(function() ::b:: goto b end) goto a"),
    ("recursion", "local function f() return 1 + f() end while true do pcall(f) end"),
    (
      "recursion in message handlers",
      """
      local function f() return 1 + f() end
      while true do xpcall(f, function(m) return xpcall(f, function() f() end) end) end
      """
    ),
    ("little Lua", "while true do pcall(pcall, pcall, error) end"),
    (
      "wrap as iterator",
      """
      for i in coroutine.wrap(function()
        local i = 0
        while true do i = i + 1 pcall(coroutine.yield, i) end
      end) do end
      """
    ),
    ("allocating", "local t = {} while true do pcall(function() t = {t and 1, 'x' .. 1} end) end"),
    ("calling the host", "while true do pcall(S.await) end"),
  ]

  @Test("A stop ends code that doesn't end by itself", arguments: hostile.indices)
  func stopsWhatDoesNotEnd(_ index: Int) throws {
    let (name, body) = Self.hostile[index]
    let host = try TestHost()
    let depth = host.vm.stackDepth
    let task = try host.operation(
      body, deadline: -20 * Self.millisecond, grace: 20 * Self.millisecond)
    #expect(task.isStopped, "\(name)")
    try expectUsable(host)
    #expect(host.vm.stackDepth == depth)
  }

  @Test("A watch doesn't move the deadline of an earlier one")
  func aWatchDoesNotMoveADeadline() throws {
    let host = try TestHost()
    try host.install(
      "T",
      [
        "watch": { [unowned vm = host.vm] call in
          vm.watchActivity(deadline: LuaVM.monotonicTime + 5000 * Self.millisecond, grace: 0)
          return call.answer()
        }
      ])
    let begin = LuaVM.monotonicTime
    let task = try host.operation(
      "T.watch() while true do end", deadline: -20 * Self.millisecond,
      grace: 20 * Self.millisecond)
    #expect(task.isStopped)
    #expect(LuaVM.monotonicTime - begin < 4000 * Self.millisecond)
    try expectUsable(host)
  }

  @Test("A stop ends code in C modules")
  func stopsForeignModules() throws {
    let host = try TestHost()
    if try host.text("return (pcall(require, 'lpeg'))") == "true" {
      let task = try host.operation(
        """
        local l = require 'lpeg'
        local p = l.P{l.P 'x' / function() end + 1 * l.V(1)}
        while true do pcall(l.match, p, ('x'):rep(10)) end
        """, deadline: -20 * Self.millisecond, grace: 0)
      #expect(task.isStopped)
    }
    if try host.text("return (pcall(require, 'cqueues'))") == "true" {
      let task = try host.operation(
        """
        local q = require 'cqueues'.new()
        q:wrap(function() while true do pcall(function() while true do end end) end end)
        while true do q:step() end
        """, deadline: -20 * Self.millisecond, grace: 0)
      #expect(task.isStopped)
    }
    try expectUsable(host)
  }

  @Test("Cleanups run within the grace")
  func cleanupsRunWithinTheGrace() throws {
    let host = try TestHost()
    let task = try host.operation(
      """
      log = {}
      local function closing(name)
        return setmetatable({}, {__close = function()
          local n = 0
          for i = 1, 1000000 do n = n + 1 end
          log[#log + 1] = name .. n
        end})
      end
      local a <close> = closing 'outer'
      pcall(coroutine.wrap(function()
        local b <close> = closing 'inner'
        table.sort({3, 2, 1}, function() while true do end end)
      end))
      """, deadline: -20 * Self.millisecond, grace: 10_000 * Self.millisecond)
    #expect(task.isStopped)
    #expect(try host.text("return table.concat(log, ' ')") == "inner1000000 outer1000000")
    try expectUsable(host)
  }

  @Test("Cleanups that don't end are stopped as well")
  func cleanupsThatDoNotEndAreStoppedAsWell() throws {
    let host = try TestHost()
    let task = try host.operation(
      """
      log = {}
      local a <close> = setmetatable({}, {__close = function() log[1] = 'begun' while true do end end})
      coroutine.wrap(function()
        local b <close> = setmetatable({}, {__close = function() while true do end end})
        while true do end
      end)()
      """, deadline: -20 * Self.millisecond, grace: 20 * Self.millisecond)
    #expect(task.isStopped)
    try expectUsable(host)
  }

  @Test("A parked coroutine is stopped when it continues")
  func parkedOneIsStoppedOnceItGoesOn() throws {
    let host = try TestHost()
    let task = try host.operation(
      """
      log = {}
      local a <close> = setmetatable({}, {__close = function() log[#log + 1] = 'outer' end})
      coroutine.wrap(function()
        local b <close> = setmetatable({}, {__close = function() log[#log + 1] = 'inner' end})
        S.sleep(1)
        while true do end
      end)()
      """, deadline: -20 * Self.millisecond, grace: 1000 * Self.millisecond)
    #expect(task.isStopped)
    #expect(try host.text("return table.concat(log, ' ')") == "inner outer")
    try expectUsable(host)
  }

  @Test("Code that ends in time isn't stopped")
  func whatEndsInTimeIsLeftAlone() throws {
    let host = try TestHost()
    for _ in 0..<200 {
      let task = try host.operation(
        "local n = 0 for i = 1, 100 do n = n + i end S.sleep(0.01) return n",
        deadline: -5_000 * Self.millisecond, grace: 0)
      #expect(!task.isStopped)
    }
    // Deadlines that fall on the very end never hit the next user of the coroutine.
    for round in 0..<200 {
      _ = try host.operation("return 1", deadline: -Int64(1 + round * 100), grace: 0)
      let next = try host.operation("local n = 0 for i = 1, 3000 do n = n + i end return n")
      #expect(!next.isStopped)
      #expect(next.result != nil)
    }
    try expectUsable(host)
  }

  @Test("A late stop doesn't reach the next user of the coroutine")
  func lateStopDoesNotHitTheNextUserOfTheCoroutine() throws {
    let host = try TestHost()
    for _ in 0..<5 {
      // It has returned before its deadline and is given back after it.
      let outcome = try host.vm.start(
        host.load("return 1"), deadline: -3 * Self.millisecond, grace: 0)
      usleep(6000)
      // A loaded machine may have taken longer.
      if case .stopped(let coroutine) = outcome {
        host.vm.release(coroutine, finished: false)
        continue
      }
      guard case .returned(.integer(1), mark: 0) = outcome else {
        Issue.record("1 expected")
        return
      }
      let next = try host.operation("local n = 0 for i = 1, 3000 do n = n + i end return n")
      #expect(!next.isStopped)
    }
  }

  @Test("Hooks of others survive a stop")
  func othersHooksSurvive() throws {
    let host = try TestHost()
    let text = try host.text(
      """
      hits = 0
      local function hook() hits = hits + 1 end
      debug.sethook(hook, '', 1000)
      kept = hook
      return debug.gethook() == hook
      """)
    #expect(text == "true")
    let task = try host.operation(
      "while true do pcall(function() while true do end end) end",
      deadline: -20 * Self.millisecond, grace: 0)
    #expect(task.isStopped)
    let after = try host.text(
      """
      local before = hits
      for i = 1, 100000 do end
      local hook, mask, count = debug.gethook()
      debug.sethook()
      return hook == kept, mask, count, hits > before
      """)
    #expect(after == "true  1000 true")
  }

  @Test("An inner operation is stopped alone while the outer one waits in place")
  func innerOperationIsStoppedAloneWhileTheOuterWaitsInPlace() throws {
    let host = try TestHost()
    try host.install(
      "X",
      [
        "busy": { [unowned host] call in
          let task = try host.scheduler.start(
            host.load("while true do end"), deadline: -20 * Self.millisecond, grace: 0)
          return call.answer(.boolean(task.isStopped))
        }
      ])
    let task = try host.operation(
      "local r table.sort({2, 1}, function() r = X.busy() return false end) return r",
      deadline: -60_000 * Self.millisecond, grace: 0)
    #expect(!task.isStopped)
    guard case .success(.boolean(true)) = try #require(task.result) else {
      Issue.record("the outer operation failed: \(String(describing: task.result))")
      return
    }
  }

  @Test("A callback in another state doesn't hide the first state from a stop")
  func anotherStateInACallbackDoesNotHideTheFirst() throws {
    let host = try TestHost()
    let other = try TestHost()
    try host.install(
      "X", ["other": { call in call.answer(.string(ByteString(try other.text("return 'hi'")))) }])
    let task = try host.operation(
      "assert(X.other() == 'hi') coroutine.wrap(function() X.other() while true do end end)()",
      deadline: -20 * Self.millisecond, grace: 0)
    #expect(task.isStopped)
    try expectUsable(other)
  }

  private func expectUsable(_ host: TestHost) throws {
    let text = try host.text(
      """
      local n = 0
      for i = 1, 100 do n = n + coroutine.wrap(function() S.sleep(1) return i end)() end
      local ok, message = pcall(error, 'fine', 0)
      return debug.gethook() == nil, n, message, #string.rep('x', 1000)
      """)
    #expect(text == "true 5050 fine 1000")
    let next = try host.operation("for i = 1, 10000 do end return 'next'")
    guard case .success(.string("next")) = try #require(next.result) else {
      Issue.record("the next operation failed")
      return
    }
  }
}
