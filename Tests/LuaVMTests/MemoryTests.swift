@_spi(Scripting) import LuaVM
import Testing

/// Running out of memory: by a failing n-th allocation, and by the state's limit.
@Suite("Failing allocations and memory limits", .alsoWithout(.blockPool))
struct MemoryTests {
  /// Makes the n-th allocation fail for n = 1, 2, … until the operation succeeds without meeting it.
  static func failEach(
    _ host: TestHost, _ name: String, _ operation: () throws -> Void
  ) throws {
    var failures = 0
    // Once undisturbed, so that what is made once only is there.
    try operation()
    for n in 1..<UInt64(20_000) {
      let depth = host.vm.stackDepth
      host.vm.failAllocation(n)
      var failed = false
      do {
        try operation()
      } catch let error as LuaError {
        failed = true
        #expect(error.code == .memory, "\(name), n = \(n): \(error)")
      }
      // Whether the count was used up: what is left would fail now.
      let met = host.vm.failAllocation(0) == 0
      #expect(host.vm.stackDepth == depth, "\(name), n = \(n)")
      if failed { failures += 1 }
      if !met {
        // Nothing is left over and the state works.
        #expect(try host.text("return 1 + 1, ('x'):rep(3)") == "2 xxx")
        return
      }
    }
    Issue.record("\(name) never succeeded")
  }

  @Test("Creating a state succeeds or throws")
  func makingAStateSucceedsOrThrows() throws {
    var made = false
    var n: UInt64 = 1
    while !made {
      var configuration = LuaConfiguration()
      configuration.failingAllocation = n
      do {
        let vm = try LuaVM(configuration: configuration)
        made = vm.failAllocation(0) != 0
        let chunk = try vm.load("return #package.path > 0", name: "t")
        guard case .boolean(true)? = try vm.call(chunk).first else {
          Issue.record("unusable after n = \(n)")
          return
        }
        vm.close()
      } catch let error as LuaError {
        #expect(error.code == .memory)
      }
      n += 1
      try #require(n < 20_000)
    }
    #expect(n > 100)
  }

  @Test("Every operation succeeds or throws")
  func everyOperationSucceedsOrThrows() throws {
    let counter = Counted.Counter()
    do {
      let host = try TestHost()
      let vm = host.vm
      let type = try vm.defineObjectType("counted", of: Counted.self, methods: [:])
      try host.install(
        "X",
        [
          "text": { call in call.answer(.string(ByteString(String(repeating: "y", count: 1000)))) },
          "short": { call in call.answer(.string(ByteString("short \(counter.living)"))) },
          "object": { call in call.answer(Counted(counter), type) },
          "table": { call in
            call.answer(.reference(try call.vm.makeTable(values: [.integer(1), .string("z")])))
          },
          "many": { call in
            call.answer((0..<200).map { .string(ByteString("value \($0)")) })
          },
          "mixed": { call in
            call.answer([
              .string(ByteString(String(repeating: "m", count: 500))),
              .reference(try call.vm.makeTable(fields: [("a", .integer(1))])), .nil, .number(1),
            ])
          },
          "throwing": { _ in throw TestProblem("thrown") },
          "raising": { _ in throw LuaError(value: .string("raised"), message: "raised") },
        ])
      func operation(_ name: String, _ body: () throws -> Void) throws {
        try Self.failEach(host, name, body)
      }
      try operation("makeTable") {
        _ = try vm.makeTable(values: [.string("q"), .integer(1)], fields: [("k", .number(2))])
      }
      try operation("load") {
        _ = try vm.load("local a = {} return function() return a end", name: "l")
      }
      let chunk = try host.load("local t = {} for i = 1, 20 do t[i] = i .. 'x' end return t, ...")
      try operation("call") { _ = try vm.call(chunk, [.string("argument"), .integer(1)]) }
      try operation("traceback") { _ = try vm.call(chunk, [], traceback: true) }
      for name in ["text", "short", "object", "table", "many", "mixed"] {
        let caller = try host.load("local r = table.pack(X.\(name)()) return r.n")
        try operation(name) { _ = try vm.call(caller) }
      }
      let table = try vm.makeTable(
        values: [.string("a"), .integer(2)],
        fields: (0..<30).map { (ByteString("key\($0)"), .integer(Int64($0))) })
      try operation("render") { _ = try vm.render(.reference(table), limit: 120) }
      try operation("tostring") { _ = try vm.tostring(.reference(table)) }
      try operation("pairs") { _ = try vm.pairs(of: table) }
      try operation("get and set") {
        try vm.set(.string("v"), "fresh", in: table)
        _ = try vm.get(.string("fresh"), in: table)
        try vm.set(.nil, "fresh", in: table)
      }
      try operation("makeFunction") { _ = try vm.makeFunction { $0.answer() } }
      try operation("object value") { _ = try vm.value(of: Counted(counter), type) }
      try operation("defineObjectType") {
        _ = try vm.defineObjectType(
          "fresh", of: Counted.self, methods: ["m": { $0.answer() }], getter: { $0.answer() },
          metamethods: { _ in ["__len": { $0.answer(.integer(1)) }] })
      }
      let waiting = try host.load(
        "local w = coroutine.wrap(function(a) S.sleep(1) return a .. 'b' end) return w('a')")
      try operation("start and resume") {
        let task = try host.scheduler.start(waiting)
        host.scheduler.runAll()
        if case .failure(let error)? = task.result { throw error }
      }
      // So many at a time are no longer made one by one.
      let sleeping = try host.load("S.sleep(1)")
      try operation("start many") {
        var started: [RunningCoroutine] = []
        defer { for coroutine in started { vm.release(coroutine, finished: false) } }
        for _ in 0..<90 {
          switch vm.start(sleeping) {
          case .parked(let coroutine): started.append(coroutine)
          case .failed(let coroutine):
            started.append(coroutine)
            throw vm.failure(coroutine).error
          case .refused(let error): throw error
          default: Issue.record("it doesn't sleep")
          }
        }
      }
      let kept = try host.load("return ...")
      try operation("references") {
        var held: [LuaReference] = []
        for _ in 0..<200 {
          held.append(try vm.makeTable())
        }
        _ = try vm.call(kept, held.map { .reference($0) })
      }
      try vm.collectGarbage()
      #expect(counter.living == 0)
      vm.close()
    }
    #expect(counter.living == 0)
  }

  @Test("A thrown Swift error keeps its identity")
  func thrownSwiftErrorKeepsItsIdentity() throws {
    let host = try TestHost()
    try host.install("X", ["throwing": { _ in throw TestProblem("thrown") }])
    let chunk = try host.load("X.throwing()")
    // The userdata is there from the start, and each time again before Swift is called; so whatever
    // allocation fails, it is the error itself or Lua's own.
    var identical = 0
    for n in 1..<UInt64(60) {
      host.vm.failAllocation(n)
      do {
        _ = try host.vm.call(chunk)
        Issue.record("nothing was thrown")
      } catch let problem as TestProblem {
        identical += 1
        #expect(problem == TestProblem("thrown"))
      } catch let error as LuaError {
        #expect(error.code == .memory)
      }
      host.vm.failAllocation(0)
    }
    #expect(identical > 40)
    // With no memory at all from the throw on.
    try host.install(
      "Y",
      [
        "throwing": { call in
          call.vm.memoryLimit = 1
          throw TestProblem("while out of memory")
        }
      ])
    let caught = try host.load("local ok, e = pcall(Y.throwing) error(e, 0)")
    #expect(throws: TestProblem("while out of memory")) { try host.vm.call(caught) }
    host.vm.memoryLimit = nil
    #expect(try host.text("return 'fine'") == "fine")
  }

  static let growing: [(String, String)] = [
    ("strings", "local s = 'x' while true do s = s .. s end"),
    ("string.rep", "local s = ('x'):rep(1e9) return s"),
    ("tables", "local t = {} while true do t[#t + 1] = {} end"),
    ("closures", "local t = {} while true do t[#t + 1] = function() return t end end"),
    ("coroutines", "local t = {} while true do t[#t + 1] = coroutine.create(print) end"),
    ("userdata", "local t = {} while true do t[#t + 1] = X.object() end"),
    ("host strings", "local t = {} while true do t[#t + 1] = X.text() .. #t end"),
    ("stack", "local function f(...) return select('#', ...) + f(1, ...) end f()"),
    ("finalizers", "local t = {} while true do t[#t + 1] = setmetatable({}, {__gc = print}) end"),
    (
      "in a handler",
      "xpcall(error, function() local t = {} while true do t[#t + 1] = {} end end) error('not enough memory')"
    ),
  ]

  @Test(
    "A script can catch the error of the memory limit", arguments: growing.indices, [false, true])
  func limitIsCatchable(_ index: Int, _ generational: Bool) throws {
    let (name, body) = Self.growing[index]
    let counter = Counted.Counter()
    let host = try TestHost(
      LuaConfiguration(memoryLimit: 4_000_000, generationalCollector: generational))
    let type = try host.vm.defineObjectType("counted", of: Counted.self, methods: [:])
    try host.install(
      "X",
      [
        "object": { call in call.answer(Counted(counter), type) },
        "text": { call in call.answer(.string(ByteString(String(repeating: "t", count: 500)))) },
      ])
    try host.run("print = function() end")
    for _ in 0..<2 {
      let text = try host.text("return select(2, pcall(function() \(body) end))")
      let expected = name == "stack" ? "stack overflow" : "not enough memory"
      #expect(text.contains(expected) || text.contains("not enough memory"), "\(name): \(text)")
      #expect(host.vm.memoryUsed <= 4_000_000)
      #expect(try host.text("collectgarbage() return #('x'):rep(400000)") == "400000")
    }
    // Uncaught it is an error of code memory.
    if name == "tables" {
      do {
        try host.run(body)
      } catch let error as LuaError {
        #expect(error.code == .memory)
        #expect(error.description == "not enough memory")
      }
    }
    try host.vm.collectGarbage()
    #expect(counter.living == 0)
  }

  @Test("A limit too small for a state is an error")
  func limitTooSmallForAState() {
    for limit in stride(from: 1, to: 60_000, by: 997) {
      do {
        _ = try LuaVM(configuration: LuaConfiguration(memoryLimit: limit))
      } catch let error as LuaError {
        #expect(error.code == .memory)
      } catch {
        Issue.record("\(error)")
      }
    }
  }

  @Test(
    "Objects survive a collector under pressure",
    arguments: ["collectgarbage('generational')", "collectgarbage('incremental', 1, 10000)"])
  func collectorUnderPressure(_ mode: String) throws {
    let counter = Counted.Counter()
    let host = try TestHost()
    let taskType = host.taskType
    let type = try host.vm.defineObjectType(
      "counted", of: Counted.self,
      methods: [
        "collect": { call in
          try call.vm.collectGarbage()
          guard call.object(1, taskType) == nil else { return call.answer() }
          return call.answer(argument: 1)
        }
      ])
    try host.install("X", ["object": { call in call.answer(Counted(counter), type) }])
    let text = try host.text(
      """
      \(mode)
      collectgarbage('setpause', 0) collectgarbage('setstepmul', 1000)
      local kept = {}
      for i = 1, 300 do
        local o = X.object()
        assert(rawequal(o:collect(), o))
        if i % 10 == 0 then kept[#kept + 1] = o end
        pcall(X.object().collect)
        coroutine.wrap(function() S.sleep(0) collectgarbage('step') end)()
      end
      return #kept
      """)
    #expect(text == "30")
    try host.vm.collectGarbage()
    #expect(counter.living == 0)
  }

  @Test("The index of an account's blocks is a part of the state's memory, and shrinks with them")
  func indexOfAccount() throws {
    let vm = try LuaVM()
    defer { vm.close() }
    func growth(_ account: LuaAccount?) throws -> Int {
      let before = vm.memoryUsed
      vm.use(account)
      defer { vm.use(nil) }
      try vm.call(
        vm.load("held = {} for i = 1, 100000 do held[i] = {} end", name: "held"), as: Void.self)
      return vm.memoryUsed - before
    }
    func free() throws -> Int {
      try vm.setGlobal("held", .nil)
      try vm.collectGarbage()
      return vm.memoryUsed
    }
    let plain = try growth(nil)
    let before = try free()
    let account = try LuaAccount(limit: 1 << 30)
    #expect(try growth(account) >= plain + 100_000 * 24)
    #expect(try free() < before + (64 << 10))
  }
}
