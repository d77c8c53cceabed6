import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

/// A way in which a script can make the host keep texts.
struct TextHolder: CustomTestStringConvertible, Sendable {
  let testDescription: String
  /// Keeps the text `big(i)`.
  let code: String
  /// Whether the code belongs to an op, with its context in `ctx`.
  var isOp = false

  init(_ description: String, _ code: String, isOp: Bool = false) {
    testDescription = description
    self.code = code
    self.isOp = isOp
  }

  /// Keeps 100 texts of 250 kB. Raises the error of the first one that is refused.
  var script: String {
    let loop = "for i = 1, 100 do \(code) end"
    let whole =
      isOp
      ? """
      local run = flow.op("KeepOp", function(ctx) \(loop) end):run(nil, { log_limit = 1 })
      if run.error then error(run.error.message, 0) end
      """ : loop
    return """
      kept = {}
      function big(i) return ("x"):rep(250000) .. i end
      one = big(0)
      function refuse(e)
        if tostring(e):find("not enough memory", 1, true) then error("not enough memory", 0) end
      end
      \(whole)
      """
  }

  static let all = [
    TextHolder("values of an op", "ctx:set('key' .. i, big(i))", isOp: true),
    TextHolder("secrets", "kept[i] = flow.secret(big(i))"),
    TextHolder("tasks that are settled", "kept[i] = flow.resolved(big(i))"),
    TextHolder(
      "tasks that have failed", "kept[i] = flow.failed(big(i)) pcall(kept[i].await, kept[i])"),
    TextHolder(
      "tasks that have returned",
      "kept[i] = flow.spawn(function() return big(i) end) kept[i]:await()"),
    TextHolder(
      "tasks that have raised",
      "kept[i] = flow.spawn(function() error(big(i), 0) end) refuse(select(2, pcall(kept[i].await, kept[i])))"
    ),
    TextHolder("reasons", "kept[i] = flow.cancelled(big(i)) pcall(kept[i].await, kept[i])"),
    TextHolder("names of ops", "kept[i] = flow.op(big(i), function() end)"),
    TextHolder(
      "descriptions of ops", "kept[i] = flow.op('DocOp', { doc = big(i), run = function() end })"),
    TextHolder("names of flows", "kept[i] = flow.new(big(i))"),
    TextHolder("data of flows", "kept[i] = flow.new('flow'):data { key = big(i) }"),
    TextHolder("names in data", "kept[i] = flow.new('flow'):data { [big(i)] = 1 }"),
    TextHolder(
      "names in declarations",
      "kept[i] = flow.op('NeedOp', { needs = { [big(i)] = 'string' }, run = function() end })"),
    TextHolder(
      "results of runs",
      "kept[i] = flow.op('GiveOp', function(ctx) ctx:set('a', big(i)) end):run() refuse(kept[i].error)"
    ),
    TextHolder(
      "errors of runs",
      "kept[i] = flow.op('FailOp', function(ctx) ctx:fail(big(i)) end):run() refuse(kept[i].error)"),
    TextHolder("keys", "ctx:set(big(i), 1)", isOp: true),
    TextHolder("keys that are asked for", "ctx:has(big(i))", isOp: true),
  ]
}

@Suite("The memory limit counts texts, whatever holds them")
struct HeldTextTests {
  private static let limit = 4 << 20

  private func program() throws -> ScriptProgram {
    try ScriptProgram(LuaConfiguration(memoryLimit: Self.limit))
  }

  private func held(_ program: ScriptProgram) -> Int { program.loop.memory?.held ?? 0 }

  @Test("No way of keeping texts gets past the limit", arguments: TextHolder.all)
  func ways(_ holder: TextHolder) throws {
    let program = try program()
    let error = try #require(throws: LuaError.self) { try program.run(holder.script) }
    #expect(error.description.contains("not enough memory"))
    #expect(held(program) <= Self.limit)
    try program.run("kept = nil")
    try program.collect()
    // Keys and secrets are kept: a quarter of the limit.
    #expect(held(program) < Self.limit / 4 + 350_000)
    #expect(
      try program.text(
        """
        local op = flow.op("NextOp", function(ctx) ctx:set("key", ("x"):rep(250000)) end)
        return #op:run().data.key .. #flow.resolved(("x"):rep(250000)):await()
        """) == "250000250000")
  }

  @Test(
    "A text that nothing keeps makes room for the next one",
    arguments: [
      TextHolder("a value that is replaced", "ctx:set('key', big(i))", isOp: true),
      TextHolder("a line that is dropped", "ctx:log(big(i))", isOp: true),
      // Only Swift's memory grows: the state would see no reason to collect.
      TextHolder("tasks of one string", "flow.resolved(one)"),
      TextHolder("tasks", "flow.resolved(big(i))"),
      TextHolder("tasks of functions", "flow.spawn(function() return big(i) end):await()"),
      TextHolder("names of ops", "flow.op(big(i), function() end)"),
      TextHolder("data of flows", "flow.new('flow'):data { key = big(i) }"),
      TextHolder("runs", "flow.op('SetOp', function(ctx) ctx:set('a', big(i)) end):run()"),
    ])
  func released(_ holder: TextHolder) throws {
    let program = try program()
    try program.run(holder.script)
    try program.collect()
    #expect(held(program) < 350_000)
  }

  @Test("A value and its line in the log share a text, which counts once")
  func shared() throws {
    let program = try program()
    try program.run(
      """
      run = flow.op("ShareOp", function(ctx) ctx:set("a", ("x"):rep(250000)) end):run()
      """)
    try program.collect()
    #expect((250_000..<350_000).contains(held(program)))
    try program.run("run = nil")
    try program.collect()
    #expect(held(program) < 100_000)
  }

  @Test("A host that stays keeps no secret of a request that has ended")
  func secretsOfRequests() throws {
    let program = try program()
    let op = try #require(
      try program.run(
        """
        return flow.op("RuleOp", function(ctx)
          ctx:set("made", flow.secret("made-" .. ctx:get "token"))
          flow.spawn(function() flow.secret("spawned-" .. ctx:get "token") end):await()
          ctx:log(ctx:get "token", "made-" .. ctx:get "token")
        end)
        """
      ).first.flatMap { program.host.op(in: $0) })
    let filler = String(repeating: "x", count: 300)
    for number in 0..<3_000 {
      let token = "token-\(number)-\(filler)"
      let run = op.start(on: program.loop, data: ["token": FlowSecret(token)])
      try run.waitUntilEnd()
      try #require(run.error == nil)
      try #require(
        run.events.first { $0.kind == .log }?.message == "<redacted> made-<redacted>"
          || run.events.first { $0.kind == .log }?.message == "<redacted> <redacted>")
    }
    try program.collect()
    #expect(program.loop.secrets.count == 0)
    #expect(held(program) < 100_000)
  }

  @Test("The secrets of a run that exists count")
  func secretsCount() throws {
    let program = try program()
    let before = held(program)
    let run = Op("IdleOp") { _ in }.start(
      on: program.loop, data: ["token": FlowSecret(String(repeating: "x", count: 100_000))])
    #expect(held(program) - before > 200_000)
    withExtendedLifetime(run) {}
  }

  @Test("What a worker sends counts for the host, not for the worker")
  func workers() throws {
    let program = try program()
    program.host.workerMemoryLimit = 2_000_000
    let text = try program.text(
      """
      kept = {}
      local op = flow.op("WorkerOp", { thread = "worker", needs = { n = "integer" },
        gives = { text = "string" },
        run = function(ctx) ctx:set("text", ("x"):rep(250000) .. ctx:get "n") end })
      for i = 1, 10 do
        kept[i] = op:run { n = i }
        if kept[i].error then return kept[i].error.message end
      end
      """)
    #expect(text == "nil")
    try program.collect()
    #expect((2_500_000..<2_900_000).contains(held(program)))
  }
}
