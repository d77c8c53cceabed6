import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Synchronization
import Testing

@Suite("Scripts run by one call")
struct ScriptRunTests {
  @Test("A timeout within a function of the string library has the place of the script's call")
  func placeInPattern() async {
    let script = ScriptSource.text(
      "\nlocal found = ('a'):rep(40):find(('a?'):rep(40) .. ('a'):rep(40) .. 'b')", name: "acme.lua"
    )
    let error = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(
        script: script, permissions: .restricted, timeLimit: .milliseconds(20))
    }
    #expect(error?.kind == .timeout)
    #expect(error?.place?.file == "acme.lua" && error?.place?.line == 2, "\(error as Any)")
  }

  @Test("Data goes in, and results and the changed data come out")
  func dataGoesInAndResultsComeOut() async throws {
    let result = try await ScriptHost.run(
      script: """
        local data = ...
        data.total = data.width * #data.names
        return data.total, { "a", "b" }, nil, true, 1.5
        """,
      data: ["width": 20, "names": ["x", "y", "z"], "ratio": 0.5])
    #expect(try result.value(as: Int.self) == 60)
    #expect(try result.value(1, as: [String].self) == ["a", "b"])
    #expect(try result.value(2, as: Int?.self) == nil)
    #expect(try result.value(3, as: Bool.self))
    #expect(try result.value(4, as: Double.self) == 1.5)
    #expect(result.values.count == 5)
    #expect(try result.data("total", as: Int.self) == 60)
    #expect(try result.data("ratio", as: Double.self) == 0.5)
    let error = #expect(throws: FlowError.self) { try result.value(1, as: Int.self) }
    #expect(error?.message == "the script's result 2 is table: integer expected")
    #expect(throws: FlowError.self) { try result.value(7, as: Int.self) }
    #expect(throws: FlowError.self) { try result.data("nothing", as: Int.self) }
  }

  @Test("At most 64 scripts run at a time, without those that a script calls in Swift")
  func threads() async throws {
    // How many execute now, and at most.
    let counts = Locked((now: 0, most: 0))
    let errors = await withTaskGroup(of: FlowError?.self) { group in
      for _ in 0..<200 {
        group.addTask {
          do throws(FlowError) {
            _ = try await ScriptHost.run(script: "enter() again() leave()") { host in
              try host.count(in: counts)
            }
            return nil
          } catch {
            return error
          }
        }
      }
      return await group.reduce(into: []) { if let error = $1 { $0.append(error) } }
    }
    #expect(errors.isEmpty, "\(errors.first as Any)")
    let most = counts.withLock { $0.most }
    #expect((2...64).contains(most))
  }

  @Test("Cancelling a call that waits for a thread ends it, and none is lost")
  func cancelledWait() async throws {
    let (open, opening) = AsyncStream<Void>.makeStream()
    let busy = (0..<64).map { _ in
      Task {
        try await ScriptHost.run(script: "wait()") { host in
          let wait = try host.makeAsyncFunction("wait") { for await _ in open {} }
          try host.vm.setGlobal("wait", .reference(wait))
        }
      }
    }
    let waiting = Task { try await ScriptHost.run(script: "return 1") }
    waiting.cancel()
    await #expect(throws: FlowError.self) { try await waiting.value }
    opening.finish()
    for task in busy { _ = try await task.value }
    for _ in 0..<65 {
      #expect(try await ScriptHost.run(script: "return 1").value(as: Int.self) == 1)
    }
  }

  private struct Order: Codable, Equatable {
    struct Line: Codable, Equatable {
      var article: String
      var amount: Int
    }
    var customer: String
    var lines: [Line]
  }

  @Test("Structures that are Codable go in and come out")
  func structures() async throws {
    let order = Order(customer: "Ada", lines: [.init(article: "apples", amount: 3)])
    let result = try await ScriptHost.run(
      script: """
        local order = ...
        order.lines[2] = { article = "pears", amount = 2 }
        return order.lines[2], { article = "quinces" }
        """, data: try InitialData(encoding: order))
    #expect(try result.value(as: Order.Line.self) == .init(article: "pears", amount: 2))
    var changed = order
    changed.lines.append(.init(article: "pears", amount: 2))
    #expect(try result.data(as: Order.self) == changed)
    #expect(try result.data("lines", as: [Order.Line].self) == changed.lines)
    let error = #expect(throws: FlowError.self) { try result.value(1, as: Order.Line.self) }
    #expect(error?.kind == .mismatchedOutput)
    #expect(
      error?.message.hasPrefix("the script's result 2: amount: ") == true, "\(error?.message ?? "")"
    )
    #expect(error?.underlying is DecodingError)
    let copy = try PlainValue(encoding: order)
    #expect(try copy.decoded(as: Order.self) == order)
  }

  @Test("Secrets go in and stay secret, wherever they stand")
  func secrets() async throws {
    let result = try await ScriptHost.run(
      script: """
        local data = ...
        data.text = tostring(data.key) .. tostring(data.inner.list[1])
        return data.key, flow.op("ReadOp", function(ctx) ctx:set("size", #ctx:get "key") end)
          :run { key = data.inner.list[1] }.data.size
        """,
      data: [
        "key": FlowSecret("sk-12345"),
        "inner": ["list": [FlowSecret("sk-678").flowValue]] as FlowValue,
        "table": FlowSecret(["a", "b"]),
      ]
    ) { try $0.vm.setGlobal("flow", .reference($0.module)) }
    #expect(try result.value(as: FlowSecret<String>.self).value == "sk-12345")
    #expect(try result.value(1, as: Int.self) == 6)
    #expect(try result.data("text", as: String.self) == "<redacted><redacted>")
    #expect(try result.data("table", as: FlowSecret<[String]>.self).value == ["a", "b"])
    #expect(result.data.flowValue["inner"]?["list"]?[0]?.isSecret == true)
  }

  private final class Basket: LuaObject, FlowValueConvertible, Sendable {
    let total = Mutex(0)
  }

  @Test("Objects of bound classes go in, and only the program has them afterwards")
  func objects() async throws {
    let (basket, other) = (Basket(), Basket())
    let result = try await ScriptHost.run(
      script: """
        local data = ...
        data.basket:add(3)
        data.list[1]:add(4)
        data.basket:add(data.list[1].total)
        """, data: ["basket": basket, "list": [other], "name": "Ada"]
    ) { host in
      try host.vm.define(
        LuaClass<Basket>("Basket") {
          $0.property("total") { $0.total.withLock { $0 } }
          $0.method("add") { (basket, number: Int) in basket.total.withLock { $0 += number } }
        })
    }
    #expect(basket.total.withLock { $0 } == 7)
    #expect(try result.data("name", as: String.self) == "Ada")
    #expect(result.data.flowValue["basket"] == nil)
    // Another type has no methods, but can be passed on.
    let passed = try await ScriptHost.run(
      script: "local data = ...; return data.basket == data.basket, type(data.basket.total)",
      data: ["basket": basket]
    ) { try $0.vm.define(LuaClass<Basket>("Basket") { _ in }) }
    #expect(try passed.value(as: Bool.self))
  }

  @Test("A table of a Lua state with a function in it doesn't go in")
  func functionsStayOutside() async throws {
    let scripts = try await ScriptThread(permissions: .restricted)
    let message = try await scripts.perform { host -> ByteString in
      let chunk = try host.vm.load(
        """
        return require "flow".op("SetOp", function(ctx) ctx:set("t", { f = print }) end):start()
        """, name: "x")
      let run = try #require(try host.vm.call(chunk).first.flatMap { host.startedRun(in: $0) })
      // The compiler refuses to send it otherwise.
      nonisolated(unsafe) let data: InitialData = ["t": try #require(run.data["t"])]
      do { _ = try await ScriptHost.run(script: "return 1", data: data) } catch {
        return FlowError.from(error).message
      }
      return "nothing was thrown"
    }
    #expect(message == "the data 't' of a script can't be copied")
    await scripts.shutdown()
  }

  @Test("A script waits, and uses the ops of the program")
  func aScriptWaitsAndUsesTheOpsOfTheProgram() async throws {
    let result = try await ScriptHost.run(
      script: """
        local flow = require "flow"
        flow.sleep(0.001)
        local run = flow.new("double"):add(flow.ops.DoubleOp):start { number = 21 }
        run:await()
        return run.data.double
        """
    ) { host in
      host.register(
        Op("DoubleOp", needs: ["number": "integer"], gives: ["double": "integer"]) { context in
          context.set("double", try context.value("number", as: Int.self) * 2)
        })
    }
    #expect(try result.value(as: Int.self) == 42)
  }

  @Test("Errors of the script and of its text are thrown")
  func errorsOfTheScriptAreThrown() async throws {
    let raised = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(script: .text("local x = nil; return x.y", name: "bad"))
    }
    #expect(raised?.kind == .error)
    #expect(raised?.message.description.hasPrefix("bad:1: attempt to index a nil value") == true)
    let table = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(script: "error { code = 7, message = 'no' }")
    }
    #expect(table?.code == 7)
    let syntax = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(script: "return return")
    }
    #expect(syntax?.message.description.hasPrefix("script:1:") == true)
    let missing = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(script: .file("/nowhere/at-all.lua"))
    }
    #expect(missing?.message.description.contains("/nowhere/at-all.lua") == true)
    let bytecode = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(script: "\u{1B}Lua")
    }
    #expect(bytecode?.message.description.contains("attempt to load a binary chunk") == true)
    let function = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(script: "return print")
    }
    #expect(function?.message == "the script's result 1 can't be copied to Swift: function")
    let exit = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(script: "os.exit(3)")
    }
    #expect(exit?.message.description.contains("os.exit") == true)
  }

  // MARK: Limits

  @Test(
    "The time limit stops a script, whether it is busy or waits",
    arguments: [
      "while true do end", "while true do pcall(function() while true do end end) end",
      "require 'flow'.sleep(3600)", "coroutine.wrap(function() while true do end end)()",
    ])
  func theTimeLimitStopsAScript(_ source: String) async throws {
    let error = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(script: .text(source), timeLimit: .milliseconds(20))
    }
    #expect(error?.kind == .timeout)
  }

  @Test(
    "Limits and cancellation stop a restricted script within functions of C",
    arguments: [
      "('a'):rep(40):find(('a?'):rep(40) .. ('a'):rep(40) .. 'b')",
      "pcall(string.gsub, ('a'):rep(40), ('a?'):rep(40) .. ('a'):rep(40) .. 'b', '')",
      "table.move({}, 1, 1 << 62, 2)",
      "pcall(table.insert, setmetatable({}, { __len = function() return 1 << 62 end }), 1, 1)",
    ])
  func restrictedFunctionsOfCStop(_ call: String) async throws {
    // Again, whatever catches the stop.
    let source = ScriptSource.text("for _ = 1, 3 do \(call) end while true do \(call) end")
    let error = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(
        script: source, permissions: .restricted, timeLimit: .milliseconds(20))
    }
    #expect(error?.kind == .timeout)
    let task = Task { try await ScriptHost.run(script: source, permissions: .restricted) }
    task.cancel()
    let cancelled = await #expect(throws: FlowError.self) { try await task.value }
    #expect(cancelled?.kind == .cancelled)
    let scripts = try await ScriptThread(permissions: .restricted)
    let (began, continuation) = AsyncStream<Void>.makeStream()
    let busy = Task {
      try await scripts.perform { host in
        try host.vm.setGlobal(
          "began",
          .reference(
            try host.vm.makeFunction { call in
              continuation.finish()
              return call.answer()
            }))
        let chunk = try host.vm.load(ByteString("began() \(call)"), name: "busy")
        try host.vm.call(chunk, as: Void.self)
      }
    }
    for await _ in began {}
    await scripts.shutdown(grace: .zero)
    // Code of the main chunk may catch the stop, and ends then.
    _ = try? await busy.value
  }

  @Test("The memory limit stops a script")
  func theMemoryLimitStopsAScript() async throws {
    let error = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(
        script: "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end",
        memoryLimit: 16 << 20)
    }
    #expect(error?.message.description.contains("not enough memory") == true)
    #expect(error?.kind == .memory)
    let tiny = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(script: "return 1", memoryLimit: 1000)
    }
    #expect(tiny?.message.description.contains("not enough memory") == true)
    #expect(tiny?.kind == .memory)
  }

  @Test(
    "The memory limit holds for copies of the results, too",
    arguments: [
      "for i = 1, 100 do t[i] = text end return t",
      "for i = 1, 100 do t[i] = text end return table.unpack(t)",
      "for i = 1, 100 do data[i] = text end",
      "t = {text} local all = {} for i = 1, 100 do all[i] = t end return table.unpack(all)",
    ])
  func theMemoryLimitHoldsForCopies(_ code: String) async throws {
    let error = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(
        script: .text("local data, t, text = ..., {}, ('x'):rep(1 << 20) " + code, name: "long"),
        memoryLimit: 16 << 20)
    }
    #expect(error?.message.description.contains("not enough memory") == true)
    #expect(error?.kind == .memory)
  }

  @Test("Results and data that take most of the memory limit are copied")
  func largeResultsAreCopied() async throws {
    let result = try await ScriptHost.run(
      script: """
        local data = ...
        data.list = {}
        for i = 1, 1 << 19 do data.list[i] = i end
        return data.list
        """, memoryLimit: 9 << 20)
    #expect(try result.value(as: [Int].self).count == 1 << 19)
    #expect(try result.data("list", as: [Int].self).last == 1 << 19)
  }

  @Test(
    "Cancelling the calling task cancels the script",
    arguments: [
      "began() while true do pcall(function() while true do end end) end",
      "began() require 'flow'.sleep(3600)",
    ])
  func cancellingTheCallerCancelsTheScript(_ source: String) async throws {
    let (began, continuation) = AsyncStream<Void>.makeStream()
    let running = Task {
      try await ScriptHost.run(script: .text(source)) { host in
        let begin = try host.vm.makeFunction { call in
          continuation.finish()
          return call.answer()
        }
        try host.vm.setGlobal("began", .reference(begin))
      }
    }
    for await _ in began {}
    running.cancel()
    let error = await #expect(throws: FlowError.self) { try await running.value }
    #expect(error?.kind == .cancelled)
  }

  @Test("A task that is cancelled already runs no script")
  func aTaskThatIsCancelledAlreadyRunsNoScript() async throws {
    let running = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await ScriptHost.run(script: "while true do end")
    }
    let error = await #expect(throws: FlowError.self) { try await running.value }
    #expect(error?.kind == .cancelled)
  }

  @Test("Many scripts run at the same time")
  func manyScriptsRunAtTheSameTime() async throws {
    let sum = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<32 {
        group.addTask {
          try await ScriptHost.run(
            script: "local data = ... require 'flow'.sleep(0.001) return data.number * 2",
            data: ["number": number]
          ).value(as: Int.self)
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(sum == 992)
  }

  // MARK: Output

  @Test("A handler gets what the script, its workers and its programs print")
  func aHandlerGetsWhatTheScriptPrints() async throws {
    let text = Locked("")
    let result = try await ScriptHost.run(
      script: """
        print("a", 1, nil, true)
        assert(io.write("b", 2, 2.5) == io.stdout)
        io.stdout:write("\\n")
        local flow = require "flow"
        local work = function() print "worker" io.stderr:write("work\\n") end
        assert(flow.op("PrintOp", { thread = "worker", run = work }):run().ok)
        flow.exec({ "echo", "program" }, { capture = false }):await()
        local kept = flow.exec({ "echo", "tee" }, { tee = true }):await()
        flow.exec({ "echo", "kept" }):await()
        local ok, message = pcall(io.write, {})
        return message, kept.stdout
        """,
      output: .handler { bytes in text.withLock { $0 += bytes.description } })
    #expect(text.withLock { $0 } == "a\t1\tnil\ttrue\nb22.5\nworker\nwork\nprogram\ntee\n")
    #expect(
      try result.value(as: String.self)
        == "bad argument #1 to 'io.write' (string expected, got table)")
    #expect(try result.value(1, as: String.self) == "tee\n")
  }

  @Test("The output of a script and of a thread of scripts goes to their destination")
  func theOutputGoesToItsDestination() async throws {
    let text = Locked("")
    let output = LuaOutput.handler { bytes in text.withLock { $0 += "\(bytes)" } }
    _ = try await ScriptHost.run(script: "print 'shown'", output: output)
    _ = try await ScriptHost.run(script: "print 'hidden'", output: .discarded)
    let scripts = try await ScriptThread(output: output)
    try await scripts.perform { host in
      _ = try host.vm.call(try host.vm.load("print 'thread'", name: "script"))
    }
    await scripts.shutdown()
    #expect(text.withLock { $0 } == "shown\nthread\n")
  }
}

extension ScriptHost {
  /// Registers functions that count how many scripts execute.
  fileprivate func count(in counts: Locked<(now: Int, most: Int)>) throws {
    let enter = try vm.makeFunction("enter") {
      counts.withLock {
        $0.now += 1
        $0.most = max($0.most, $0.now)
      }
    }
    let leave = try vm.makeFunction("leave") { counts.withLock { $0.now -= 1 } }
    let again = try makeAsyncFunction("again") {
      _ = try await ScriptHost.run(script: "return 1")
    }
    try vm.setGlobal("enter", .reference(enter))
    try vm.setGlobal("leave", .reference(leave))
    try vm.setGlobal("again", .reference(again))
  }
}
