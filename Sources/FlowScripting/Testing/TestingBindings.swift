internal import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

/// `require "flow.testing"`: tests of ops for scripts.
struct TestingBindings {
  let host: ScriptHost

  /// Makes the module `flow.testing`.
  func makeModule() throws -> LuaReference {
    let run = try host.vm.makeFunction(
      host.bind { host, call in try Self(host: host).runTest(call) })
    let digest = try host.vm.makeFunction(
      host.bind { host, call in
        let op = try Arguments(host, call, "code_digest").op(1)
        host.ending.describesFlows = true
        guard let digest = try host.codeDigest(of: op) else { return call.answer(.nil) }
        return call.answer(.string(digest))
      })
    var fields: [(ByteString, LuaValue)] = [
      ("run", .reference(run)), ("code_digest", .reference(digest)),
    ]
    if let test = try host.testSession().test { fields.append(("test", .reference(test))) }
    return try host.vm.makeTable(fields: fields)
  }

  /// `testing.run(op, options)`: runs an op to its end and returns the settled run.
  private func runTest(_ call: LuaCall) throws -> LuaAnswer {
    let arguments = Arguments(host, call, "run")
    let op = try arguments.op(1)
    let options = try TestOptions(arguments, 2, for: op)
    let replacements =
      options.fakes.isEmpty && options.steps.isEmpty
      ? nil : OpReplacements(options.fakes, steps: options.steps)
    if let name = replacements?.nameWithinItself {
      throw arguments.wrong(
        2, "field 'replace': what replaces '\(name)' contains '\(name)', and would never end")
    }
    let inner = try makeTestLoop(call)
    let code = CodeInPlace(host)
    let (run, end) = onTestLoop(inner) { loop in
      loop.replacements = replacements
      loop.processReplacement = programReplacement(options.programs)
      loop.httpReplacement = options.requests
      defer {
        loop.replacements = nil
        loop.processReplacement = nil
        loop.httpReplacement = nil
      }
      let run = options.start(op, on: loop)
      return (run, runToEnd(run, for: code))
    }
    switch end {
    case .request(let request): throw host.answer(request)
    case .stopped(let error): throw host.raise(error)
    case nil: break
    }
    // Ops that bodies start are known only now.
    let known = op.namesWithin.union(replacements?.usedNames ?? [])
    if !host.isChecking,
      let unknown = options.fakes.keys.sorted().first(where: { !known.contains($0) })
    {
      throw arguments.wrong(
        2, "field 'replace': no op called '\(unknown)' is in '\(op.name)', nor was one started"
      )
    }
    return call.answer(run, host.types.run)
  }

  /// The replacement that executes the programs of a test; nil for the system.
  private func programReplacement(_ programs: OutsideReplacement) -> (any ProcessReplacement)? {
    switch programs {
    case .refused, .table: RefusedPrograms(isWorker: false)
    case .real: nil
    case .function(let function): TestPrograms(host, function)
    }
  }

  private var loops: TestLoops { host.service { TestLoops() } }

  /// A loop with a virtual clock, on which nothing is pending.
  private func makeTestLoop(_ call: LuaCall) throws -> FlowEventLoop {
    // Reusing the loop of an earlier test saves its construction, and the descriptor of its
    // mailbox.
    if let idle = loops.idle.popLast() { return idle }
    let made = FlowEventLoop(within: host.activeLoop, clock: VirtualClock())
    do throws(SystemError) { try made.mailbox.open() } catch {
      throw host.raise(
        FlowError.from(error).with { $0.message = call.position + $0.message })
    }
    return made
  }

  /// Runs `body` on such a loop, while the current loop is paused: everything that scripts do
  /// during `body` is done there.
  ///
  /// It is a separate loop, rather than a part of the host's own, because time can then jump only
  /// for the test: the loop has its own timers, programs and clock, and other pending tasks neither
  /// continue nor keep the clock from jumping. Nothing has to be copied, because both are confined
  /// to the same thread.
  private func onTestLoop<Result>(_ inner: FlowEventLoop, _ body: (FlowEventLoop) -> Result)
    -> Result
  {
    let outer = host.activeLoop
    (inner.timeSource as? VirtualClock)?.restart()
    inner.randomNumberGenerator = SeededGenerator(seed: 1)
    let outside = host.current
    host.current = ScriptHost.Current()
    host.waitingLoops.append(outer)
    host.workerPools.pause()
    host.activeLoop = inner
    host.events.onLoopChange?(inner)
    defer {
      // Workers know the test's time: the next test starts new ones.
      host.workerPools.resume()
      host.waitingLoops.removeLast()
      host.activeLoop = outer
      host.current = outside
      host.events.onLoopChange?(outer)
      if inner.turn(mayBlock: false) == .idle {
        loops.idle.append(inner)
      } else {
        inner.shutdown()
      }
    }
    return outer.standStill(for: inner) { host.vm.enclose { body(inner) } }
  }

  /// The reason why a test ended before its run.
  private enum EarlyEnd {
    /// A request of signals.
    case request(ScriptHost.Request)
    /// The code that has started it has to stop.
    case stopped(FlowError)
  }

  /// Runs the test's loop until its run has ended, or until its starter has to stop; then ends
  /// everything that is left.
  private func runToEnd(_ run: Run, for code: CodeInPlace) -> EarlyEnd? {
    var stalls = StallPass(times: 2)
    // An op that ignores the first stop is ended by the second.
    while !host.loop.turn(until: { run.isConcluded || host.vm.isEnclosureStopped || code.hasToLook }
    ),
      stalls.failNext(on: host.loop)
    {}
    if host.vm.isEnclosureStopped || code.stopError != nil {
      let error = code.stopError ?? .cancelled()
      host.cancelEverything(error.asReason)
      return .stopped(error)
    }
    let request = host.takeRequest()
    switch request {
    case .termination:
      host.ending.isTerminating = true
      host.cancelEverything(reason: ScriptHost.termination)
    case .interruption: host.cancelEverything(reason: ScriptHost.interruption)
    case .cancellation(let error): host.cancelEverything(error)
    case nil: host.cancelEverything(reason: nil)
    }
    return request.map { .request($0) }
  }
}

private final class TestLoops: HostService {
  /// Loops for further tests, on which nothing is pending.
  var idle: [FlowEventLoop] = []
}

/// The options of `testing.run`.
private struct TestOptions {
  /// The replacements of ops, by name.
  private(set) var fakes: [ByteString: Op] = [:]
  /// The replacements of machines' steps, by name.
  private(set) var steps: [ByteString: StepReplacement] = [:]
  /// The replacement of programs.
  private(set) var programs = OutsideReplacement()
  /// The replacement that responds to requests; nil for servers.
  private(set) var requests: (any HTTPReplacement)? = RefusedRequests(isWorker: false)
  private var data: [(ByteString, FlowValue)] = []
  /// The state with which a machine begins, which can be any value.
  private var state: LuaValue = .nil

  init(_ arguments: Arguments, _ index: Int, for op: Op) throws {
    if arguments.isNil(index) { return }
    let options = try arguments.options(index, known: ["data", "replace", "exec", "http"])
    programs = try OutsideReplacement(options, "exec")
    switch try OutsideReplacement(options, "http", allowsTable: true) {
    case .refused: break
    case .real: requests = nil
    case .function(let function): requests = TestRequests(arguments.host, .function(function))
    case .table(let table):
      requests = TestRequests(
        arguments.host,
        .routes(
          try Self.routes(in: table, arguments.host) {
            arguments.wrong(index, "field 'http': \($0)")
          }))
    }
    if op is MachineOp {
      state = options.value("data") ?? .nil
    } else if let table = try options.table("data") {
      data = try arguments.host.data(in: table) { arguments.wrong(index, "field 'data': \($0)") }
    }
    guard let table = try options.table("replace") else { return }
    let wrong = { (what: String) in arguments.wrong(index, "field 'replace': \(what)") }
    let names = op.namesWithin.map(\.description).sorted()
    let stepNames = op.stepNamesWithin
    let host = arguments.host
    for (key, value) in try host.vm.pairs(of: table) {
      guard case .string(let key) = key else {
        throw wrong("names of ops are strings, got a key of type \(host.vm.typeName(of: key))")
      }
      let name = key
      if stepNames.contains(name), !names.contains(name.description) {
        steps[name] = try Self.step(value, host) { wrong("'\(name)': \($0)") }
        continue
      }
      let fake = try Self.fake(name, value, host) { wrong("'\(name)': \($0)") }
      // Other names may be those of ops that bodies start. With a misspelt name the real op would
      // run.
      if !names.contains(name.description), fake.name != name || host.op(in: value) == nil,
        let meant = NearestName.of(
          name.description, in: names + stepNames.map(\.description).sorted())
      {
        throw wrong("no op called '\(name)' is in '\(op.name)' (did you mean '\(meant)'?)")
      }
      fakes[name] = fake
    }
  }

  /// Responses by method and URL.
  private static func routes(
    in table: LuaReference, _ host: ScriptHost, _ wrong: (ByteString) -> any Error
  ) throws -> [ByteString: LuaValue] {
    var routes: [ByteString: LuaValue] = [:]
    for (key, value) in try host.vm.pairs(of: table) {
      guard case .string(let text) = key else {
        throw wrong("a method and a URL are a string, got \(host.kindName(of: key))")
      }
      do throws(HTTPMisuse) {
        routes[try ReplacedRequest.key(text)] = value
      } catch {
        throw wrong("'\(HTTPTask.shown(text))': \(error.problem)")
      }
    }
    return routes
  }

  /// The meaning of a field of `replace` that names a step: an op, a function like a step's, or the step's result.
  private static func step(
    _ value: LuaValue, _ host: ScriptHost, _ wrong: (ByteString) -> any Error
  ) throws -> StepReplacement {
    if let op = host.op(in: value) {
      if let complaint = op.complaintOfClass { throw wrong(complaint) }
      return .op(op)
    }
    if case .reference(let function) = value, function.kind == .function {
      return .function(StepFunction(function))
    }
    return .value(FlowValue(value))
  }

  /// The meaning of a field of `replace`: an op, a function, or data that the op gives.
  private static func fake(
    _ name: ByteString, _ value: LuaValue, _ host: ScriptHost, _ wrong: (ByteString) -> any Error
  ) throws -> Op {
    if let op = host.op(in: value) {
      if let complaint = op.complaintOfClass { throw wrong(complaint) }
      return op
    }
    if case .reference(let reference) = value {
      if reference.kind == .function {
        return Op(name: name, body: ScriptOpBody(host, reference))
      }
      if reference.kind == .table {
        let data = try host.data(in: reference, wrong)
        return Op("DataOp") { context in
          for (key, value) in data { context.give(context.bucket.keys.intern(key), value) }
        }.with(name: name)
      }
    }
    throw wrong("op, function or table of data expected, got \(host.kindName(of: value))")
  }

  /// Starts the op, or the machine with its state.
  func start(_ op: Op, on loop: FlowEventLoop) -> Run {
    guard let machine = op as? MachineOp else { return op.start(on: loop, data: InitialData(data)) }
    return machine.start(on: loop, from: FlowValue(state))
  }
}
