@_spi(Scripting) import LuaVM
import Testing

/// Errors of both languages on their way through the other.
@Suite("Errors between Lua and Swift")
struct ErrorTests {
  private func host() throws -> TestHost {
    let host = try TestHost()
    try host.install(
      "X",
      [
        "throwing": { _ in throw TestProblem("thrown") },
        "raise": { call in throw LuaError(value: try call.value(1), message: "raised") },
        "sentence": { _ in throw LuaError(.argument, "that was wrong") },
        "call": { [unowned host] call in
          guard case .reference(let function) = try call.value(1) else { return call.answer() }
          return call.answer(try host.vm.call(function))
        },
      ])
    return host
  }

  @Test("Swift errors pass through Lua")
  func swiftErrorsPassThroughLua() throws {
    let host = try host()
    for script in [
      "X.throwing()", "local ok, e = pcall(X.throwing) error(e, 0)",
      "coroutine.wrap(X.throwing)()", "X.call(function() X.call(X.throwing) end)",
      "local _, e = coroutine.resume(coroutine.create(X.throwing)) error(e)",
      "local c <close> = setmetatable({}, {__close = function() end}) X.throwing()",
      "table.sort({1, 2}, X.throwing)", "xpcall(error, X.throwing) X.throwing()",
    ] {
      #expect(throws: TestProblem("thrown"), "\(script)") { try host.run(script) }
      let task = try host.operation(script)
      guard case .failure(let error)? = task.result else {
        Issue.record("\(script) succeeded")
        continue
      }
      #expect(error as? TestProblem == TestProblem("thrown"))
    }
    #expect(
      try host.text(
        "return tostring(select(2, pcall(X.throwing))), type(select(2, pcall(X.throwing)))")
        == "thrown userdata")
    #expect(host.vm.stackDepth == 0)
  }

  @Test("Lua values pass through Swift")
  func luaValuesPassThroughSwift() throws {
    let host = try host()
    let text = try host.text(
      """
      local t, f = {}, function() end
      for _, v in ipairs {t, f, 'text', 5, 5.5, true, io.stdout, coroutine.create(f)} do
        for _, raise in ipairs {X.raise, function(v) X.call(function() error(v, 0) end) end} do
          local ok, e = pcall(raise, v)
          assert(not ok and rawequal(e, v) and math.type(e) == math.type(v))
        end
      end
      local ok, e = pcall(X.raise, nil)
      local ok2, e2 = pcall(X.call, error)
      return ok, e, ok2, e2, select('#', pcall(X.raise, nil))
      """)
    #expect(text == "false nil false nil 2")
    let task = try host.operation(
      "local ok, e = pcall(X.call, function() S.sleep(1) error('late', 0) end) return e")
    guard case .success(.string("late"))? = task.result else {
      Issue.record("\(String(describing: task.result))")
      return
    }
  }

  @Test("Messages equal those of the standalone interpreter")
  func messagesAreThoseOfTheStandaloneInterpreter() throws {
    let host = try host()
    let cases: [(String, String)] = [
      ("error('x', 0)", "x"), ("error('x')", "script:1: x"),
      ("error()", "(error object is a nil value)"),
      ("error({})", "(error object is a table value)"),
      ("error(true)", "(error object is a boolean value)"),
      ("error(5)", "5"), ("error(5.0)", "5.0"),
      ("error(print)", "(error object is a function value)"),
      ("error(setmetatable({}, {__tostring = function() return 'T' end}))", "T"),
      ("error(setmetatable({}, {__tostring = function() return 5 end}))", "5"),
      (
        "error(setmetatable({}, {__tostring = function() error('no') end}))",
        "(error object is a table value)"
      ),
      ("X.sentence()", "script:1: that was wrong"),
      ("\n\nX.sentence()", "script:3: that was wrong"),
      ("local x = nil + 1", "script:1: attempt to perform arithmetic on a nil value"),
    ]
    for (script, message) in cases {
      do {
        try host.run(script)
        Issue.record("\(script) succeeded")
      } catch let error as LuaError {
        #expect(error.code == .runtime)
        #expect(error.description == message, "\(script)")
      }
      #expect(host.vm.stackDepth == 0)
    }
  }

  @Test("Errors have a traceback and a place")
  func tracebacksAndPlacesAreKnown() throws {
    let host = try host()
    let chunk = try host.load("local function f()\n error('deep') end\n f()")
    do {
      _ = try host.vm.call(chunk, [], traceback: true)
    } catch let error as LuaError {
      #expect(error.description.hasPrefix("script:2: deep\nstack traceback:\n"))
    }
    guard case .failed(let coroutine) = host.vm.start(chunk) else {
      Issue.record("it didn't fail")
      return
    }
    let failure = host.vm.failure(coroutine)
    #expect(failure.position.description == "script:2: ")
    #expect(
      failure.traceback.description.contains("in upvalue 'f'")
        || failure.traceback.description.contains("in local 'f'"))
    host.vm.release(coroutine, finished: false)
    #expect(host.vm.position == "")
  }

  @Test("Statuses distinguish the kinds of failure")
  func statusesTellWhatWentWrong() throws {
    let host = try host()
    func code(_ body: () throws -> Void) -> LuaError.Code? {
      do {
        try body()
        return nil
      } catch {
        return (error as? LuaError)?.code
      }
    }
    #expect(code { _ = try host.load("x = = 1") } == .syntax)
    #expect(code { _ = try host.vm.load("\u{1B}Lua", name: "b") } == .syntax)
    #expect(code { _ = try host.vm.loadFile("/nonexistent/file.lua") } == .file)
    #expect(code { try host.run("return 1 .. {}") } == .runtime)
    #expect(code { _ = try host.vm.load("", name: "empty") } == nil)
    #expect(host.vm.stackDepth == 0)
  }

  @Test("Stack overflows are errors")
  func stackOverflowsAreErrors() throws {
    let host = try host()
    let scripts = [
      "local function f() return 1 + f() end f()",
      "local function f() return X.call(f) end f()",
      "local function f() local t = setmetatable({}, {__index = function() return f() end}) return t.x end f()",
      "local function f() return coroutine.wrap(f)() end f()",
      "local function f(s) return s:gsub('.', f) end f('x')",
      "local function f() local r = pcall(f) error('up') end f()",
      "xpcall(function() error('a') end, function(m) error(m) end) error('stack overflow', 0)",
      "local function f(m) return f(m) .. 'x' end xpcall(error, f, 1) error('stack overflow', 0)",
    ]
    for script in scripts {
      for asOperation in [false, true] {
        do {
          if asOperation {
            _ = try host.operation(script).result?.get()
          } else {
            try host.run(script)
          }
          Issue.record("\(script) succeeded")
        } catch let error as LuaError {
          let text = error.description
          #expect(
            text.contains("stack overflow") || text.contains("up") || text.contains("C-call"),
            "\(script): \(text.prefix(200))")
        }
        #expect(host.vm.stackDepth == 0)
        #expect(try host.text("return 1 + 1") == "2")
      }
    }
  }

  @Test("Unknown function numbers are refused")
  func unknownFunctionNumbersAreRefused() throws {
    let host = try host()
    let text = try host.text(
      """
      debug.setupvalue(X.throwing, 1, 1 << 40) local a = pcall(X.throwing)
      debug.setupvalue(X.throwing, 1, -1) local b = pcall(X.throwing)
      debug.setupvalue(X.throwing, 1, 'x') local c = pcall(X.throwing)
      debug.setupvalue(X.throwing, 1, 1e6) local d = pcall(X.throwing)
      local w = coroutine.wrap(print) debug.setupvalue(w, 1, 5) local e = pcall(w)
      return a and 1, b, d, e
      """)
    #expect(text.hasSuffix("false false false"))
  }
}
