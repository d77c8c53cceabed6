internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.exec`, and its common parts with `ExecOp`.
struct ExecBindings {
  let host: ScriptHost

  func install() {
    host.define("exec") { host, call in
      try host.check(.programs, call, "exec")
      var (request, check) = try Self(host: host).processRequest(
        OpArguments(Arguments(host, call, "exec")), canWrite: true)
      request.label = host.currentOp?.displayName
      if let problem = host.loop.processReplacement?.problem(with: request) {
        throw host.usage(call, problem)
      }
      let task = ProcessTask(request, check: check, at: host.workPlace, on: host.loop)
      host.begin(task, call.origin)
      return call.answer(task, host.types.task)
    }
  }

  /// The parameters `(argv, { stdin, output, tee, cwd, env, timeout, grace, check, capture })`. `env`
  /// changes the environment: a string sets a variable, `false` removes it. Only a task `canWrite` to the program, not an
  /// op.
  func processRequest(
    _ arguments: OpArguments, canWrite: Bool
  ) throws -> (ProcessRequest, check: Bool) {
    var request = ProcessRequest(try arguments.strings(1))
    if let problem = request.problem { throw arguments.wrong(1, problem.description) }
    let options = try arguments.options(
      2, known: ["stdin", "output", "tee", "cwd", "env", "timeout", "grace", "check", "capture"])
    request.owner = ObjectIdentifier(host)
    request.destination = host.vm.configuration.output.destination
    request.input = try processInput(options, canWrite: canWrite)
    request.output = try options.bytes("output")
    request.tees = try options.boolean("tee") ?? false
    request.cwd = try options.bytes("cwd")
    request.timeout = try options.duration("timeout", orZero: false)
    if let grace = try options.duration("grace", orZero: true) { request.gracePeriod = grace }
    request.capturesOutput = try options.boolean("capture") ?? true
    for (name, value) in try options.luaFields("env") ?? [] {
      switch value {
      case .string(let text): request.environment[name] = .some(text)
      case .boolean(false): request.environment[name] = .some(nil)
      default:
        let got = host.kindName(of: value)
        throw options.wrong("env", "'\(name)': string or false expected, got \(got)")
      }
    }
    if let problem = request.problem { throw arguments.wrong(2, problem.description) }
    return (request, try options.boolean("check") ?? true)
  }

  /// The option `stdin`: bytes, `"inherit"`, `"pipe"`, `{ bytes = … }` or `{ file = path }`.
  private func processInput(
    _ options: OpOptions, canWrite: Bool
  ) throws -> ProcessRequest.Input {
    switch options.luaValue("stdin") {
    case nil: return .nothing
    case .string("inherit"):
      if host.sessionReadsInput {
        throw options.wrong("stdin", "the session reads the standard input itself")
      }
      return .inherited
    case .string("pipe"):
      if !canWrite { throw options.wrong("stdin", "no code can write to the program of an op") }
      return .pipe
    case .string(let bytes): return .bytes(bytes)
    case .reference(let reference)? where reference.kind == .table:
      let fields = try options.table("stdin", known: ["bytes", "file"])
      switch (try fields?.bytes("bytes"), try fields?.bytes("file")) {
      case (let bytes?, nil): return .bytes(bytes)
      case (nil, let path?): return .file(path)
      case (let bytes, _):
        let got = bytes == nil ? "an empty table" : "both of them"
        throw options.wrong("stdin", "{ bytes = string } or { file = path } expected, got \(got)")
      }
    case .some(let value):
      throw options.wrong(
        "stdin",
        "string, { bytes = string } or { file = path } expected, got \(host.kindName(of: value))")
    }
  }

  /// The fields that only a program has, without its methods.
  static let fields: [String] = ["status", "signal", "stdout", "stderr", "pid"]

  /// The fields of a program as a task: those of its result or its error, `pid`, and its methods; nil
  /// for another name.
  func programField(_ call: LuaCall, _ program: ProcessTask) throws -> LuaAnswer? {
    guard let name = call.bytes(2) else { return nil }
    switch name.cases {
    case "status", "signal", "stdout", "stderr":
      if program.state == .pending {
        throw host.usage(call, "'\(name)' isn't there yet: await the task first")
      }
      guard let result = program.result ?? program.error?.process else { return call.answer(.nil) }
      return call.answer(result.luaFields.first { $0.0 == name }?.1 ?? .nil)
    case "pid":
      return call.answer(program.processNumber.map { .integer(Int64($0)) } ?? .nil)
    default:
      return try ProgramMethods.of(host).methods[name].map { call.answer(.reference($0)) }
    }
  }

  // MARK: Standard input

  /// Defines `flow.read`.
  func installRead() {
    host.define("read") { host, call in
      try host.checkAllowed(.files, call, "read")
      if host.sessionReadsInput {
        throw host.usage(
          call,
          "bad use of 'read' (a session reads the standard input itself; io.read reads a line)")
      }
      let wait = InputWait(host, try Self(host: host).inputFormats(Arguments(host, call, "read")))
      wait.start()
      return try call.wait(wait)
    }
  }

  /// The formats of `io.read`; a line without any.
  private func inputFormats(_ arguments: Arguments) throws -> [InputFormat] {
    if arguments.count == 0 { return [.line(keepsNewline: false)] }
    return try (1...arguments.count).map { index in
      let expected = "\"l\", \"L\", \"n\", \"a\" or a number of bytes"
      if let number = arguments.call.number(index) {
        guard let count = Int(exactly: number), count >= 0 else {
          throw arguments.wrong(
            index,
            "\(expected) expected, got \(FlowValue(try arguments.call.value(index)).logText)"
          )
        }
        return .bytes(count)
      }
      let text = try arguments.string(index)
      // Like io.read's: an optional asterisk, and the first letter counts.
      switch text.bytes.first(where: { $0 != UInt8(ascii: "*") }) {
      case UInt8(ascii: "l"): return .line(keepsNewline: false)
      case UInt8(ascii: "L"): return .line(keepsNewline: true)
      case UInt8(ascii: "n"): return .number
      case UInt8(ascii: "a"): return .all
      default: throw arguments.wrong(index, "\(expected) expected, got '\(text)'")
      }
    }
  }
}

/// Waits for standard input.
private final class InputWait: LuaWait {
  private let host: ScriptHost
  private let loop: FlowEventLoop
  private let formats: [InputFormat]
  private var read: InputRead?

  override var subject: String { "standard input" }

  init(_ host: ScriptHost, _ formats: [InputFormat]) {
    self.host = host
    loop = host.loop
    self.formats = formats
  }

  func start() {
    let read = InputRead(formats) { [weak self] in self?.ready() }
    self.read = read
    if loop.standardInput.start(read) { ready() }
  }

  override func abandon() {
    if !isReady, let read = read.take() { loop.standardInput.cancel(read) }
  }

  override func discard() {
    if let read = read.take() { loop.standardInput.giveBack(read) }
  }

  override func finish(_ call: LuaCall) throws -> LuaAnswer {
    guard let read = read.take() else { return call.answer() }
    if let problem = read.problem {
      if problem.isLackOfMemory { throw LuaError(.memory, LuaVM.memoryError) }
      // As io.read returns it.
      let code = problem.code.map { LuaValue.integer(Int64($0)) } ?? .nil
      return call.answer([.nil, .string(problem.message), code])
    }
    return call.answer(
      try read.parts.map { part in
        switch part {
        case .bytes(let bytes): .string(bytes)
        case .number(let text): try host.vm.number(from: text)
        case .end: .nil
        }
      })
  }
}

extension ProcessResult {
  /// The result of a program, as scripts see it.
  var luaFields: [(ByteString, LuaValue)] {
    var fields: [(ByteString, LuaValue)] = [("status", .integer(Int64(status)))]
    if let signal = signal { fields.append(("signal", .integer(Int64(signal)))) }
    if hasStdout { fields.append(("stdout", .string(stdout))) }
    if hasStderr { fields.append(("stderr", .string(stderr))) }
    return fields
  }
}
