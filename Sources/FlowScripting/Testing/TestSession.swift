package import FlowEngine
internal import FlowHTTP
@_spi(Scripting) package import LuaVM

/// The tests of one file in a process of its own, as `flowlua --test` asks for them.
package struct TestSettings {
  /// The path of the file.
  package var path: ByteString
  /// The seed of `math.random` and of the delays of retries.
  package var seed: Int64
  /// Whether the seed decides about the order of the tests, too.
  package var shuffles = false
  /// A part of the names of the tests to execute; nil: all.
  package var filter: ByteString?
  /// Whether the first failure ends the file.
  package var failsFast = false
  /// Whether snapshots are written.
  package var updates = false
  /// Whether the lines that are executed are noted.
  package var covers = false
  /// The path of a script from the folder of those whose lines are noted; nil for others.
  package var relative: (ByteString) -> ByteString?
  /// Whether a limit has ended the process's time.
  package var isOver: () -> Bool = { false }
  /// Takes what is found out, as bytes for the process that has started this one.
  package var record: (ByteString) -> Void

  package init(
    path: ByteString, seed: Int64, relative: @escaping (ByteString) -> ByteString?,
    record: @escaping (ByteString) -> Void
  ) {
    self.path = path
    self.seed = seed
    self.relative = relative
    self.record = record
  }
}

/// The tests of a script: `flow.testing.test`, and what it checks with.
final class TestSession: HostService, RunMonitor {
  /// nil where a script executes its tests itself.
  var settings: TestSettings?
  /// The functions of `harness.lua`.
  fileprivate(set) var test: LuaReference?
  fileprivate var main: LuaReference?
  /// The latest run of the present test that has ended.
  private(set) var lastRun: Run?

  func runBegins(_ run: Run) -> Bool { true }
  func runEnded(_ run: Run) { lastRun = run }
  fileprivate func forgetRun() { lastRun = nil }
}

extension ScriptHost {
  /// The tests of the script; the functions for them are made with the first call.
  func testSession() throws -> TestSession {
    let session = service { TestSession() }
    if session.test != nil { return session }
    let chunk = try vm.loadOwn(
      ByteString(PackageResources.harness_lua), name: "=[flow.testing]")
    let made = try vm.call(chunk, [.reference(try testFunctions(session))])
    guard made.count == 2, case .reference(let test) = made[0], case .reference(let main) = made[1]
    else { throw LuaError(.runtime, "no functions for tests were made") }
    (session.test, session.main) = (test, main)
    return session
  }

  /// Makes the host execute the tests of a file: what reaches out of the process is refused, and `test` is a global.
  ///
  /// - Throws: A `LuaError` when memory runs out.
  package func beginTests(_ settings: TestSettings) throws {
    let session = try testSession()
    session.settings = settings
    loop.runMonitors.append(session)
    loop.processReplacement = RefusedPrograms(isWorker: false)
    loop.httpReplacement = RefusedRequests(isWorker: false)
    loop.randomNumberGenerator = SeededGenerator(seed: UInt64(bitPattern: settings.seed))
    let refuse = try vm.makeFunction(
      bind { host, call in
        throw host.usage(
          call,
          "'\(call.bytes(1) ?? "")' starts a program, which a test doesn't: use flow.exec, which testing.run replaces"
        )
      })
    _ = try vm.call(
      try vm.loadOwn(Self.withoutPrograms, name: "=[flow.testing]"), [.reference(refuse)])
    if let test = session.test { try vm.setGlobal("test", .reference(test)) }
  }

  private static let withoutPrograms: ByteString = """
    local refuse = ...
    function io.popen() refuse "io.popen" end
    function os.execute(command) return command == nil or refuse "os.execute" end
    """

  /// The function that executes a test file and then its tests.
  ///
  /// - Parameter chunk: The main chunk of the file.
  /// - Returns: The function, which takes what the chunk takes.
  /// - Throws: A `LuaError` when memory runs out.
  package func testMain(_ chunk: LuaReference) throws -> LuaReference {
    guard let session = existing(TestSession.self), let settings = session.settings,
      let main = session.main
    else { return chunk }
    var fields: [(ByteString, LuaValue)] = [
      ("seed", .integer(settings.seed)), ("shuffles", .boolean(settings.shuffles)),
      ("fail_fast", .boolean(settings.failsFast)), ("update", .boolean(settings.updates)),
      ("coverage", .boolean(settings.covers)),
    ]
    if let filter = settings.filter { fields.append(("filter", .string(filter))) }
    let table = try vm.makeTable(fields: fields)
    guard
      case .reference(let made)? = try vm.call(main, [.reference(chunk), .reference(table)]).first
    else { return chunk }
    return made
  }

  /// The functions of the host for `harness.lua`.
  private func testFunctions(_ session: TestSession) throws -> LuaReference {
    func function(_ body: @escaping (ScriptHost, LuaCall) throws -> LuaAnswer) throws -> LuaValue {
      .reference(try vm.makeFunction(bind { host, call in try body(host, call) }))
    }
    return try vm.makeTable(fields: [
      ("misuse", try function { host, call in throw host.usage(call, call.bytes(1) ?? "") }),
      (
        "begin",
        try function { [unowned session] _, call in
          session.forgetRun()
          return call.answer()
        }
      ),
      (
        "clock",
        try function { _, call in
          call.answer(.number(Double(LuaVM.monotonicTime) / 1_000_000_000))
        }
      ),
      (
        "ends",
        try function { [unowned session] host, call in
          call.answer(.boolean(host.endsEverything || session.settings?.isOver() == true))
        }
      ),
      (
        "file",
        try function { [unowned session] host, call in
          if let path = session.settings?.path { return call.answer(.string(path)) }
          guard case .reference(let words) = try host.vm.rawGet("arg", in: host.vm.globals()),
            words.kind == .table,
            case .string(let path) = try host.vm.rawGet(.integer(0), in: words)
          else { return call.answer(.nil) }
          return call.answer(.string(path))
        }
      ),
      (
        "record",
        try function { [unowned session] _, call in
          session.settings?.record(call.bytes(1) ?? "")
          return call.answer()
        }
      ),
      (
        "summary",
        try function { host, call in
          guard let run = host.startedRun(in: try call.value(1)) else { return call.answer(.nil) }
          return call.answer(.string(run.summary(SummaryOptions(full: true))))
        }
      ),
      (
        "last_summary",
        try function { [unowned session] _, call in
          guard let run = session.lastRun else { return call.answer(.nil) }
          return call.answer(.string(run.summary(SummaryOptions())))
        }
      ),
      (
        "cover",
        try function { host, call in
          let chunk = try host.vm.loadOwn(
            ByteString(PackageResources.coverage_lua), name: "=[flow.testing]")
          let functions = try call.value(2)
          let made = try host.vm.call(chunk, [functions, try call.value(1)])
          return call.answer(made.first ?? .nil)
        }
      ),
      (
        "relative",
        try function { [unowned session] _, call in
          guard let path = call.bytes(1), let found = session.settings?.relative(path) else {
            return call.answer(.nil)
          }
          return call.answer(.string(found))
        }
      ),
    ])
  }
}
