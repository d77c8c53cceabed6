@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Executes the programs of a test by a function of the script.
final class TestPrograms: ProcessReplacement {
  private let host: ScriptHost
  private let function: LuaReference
  /// The calls for programs that haven't ended.
  private var calls: [ObjectIdentifier: ReplacedCall] = [:]

  init(_ host: ScriptHost, _ function: LuaReference) {
    self.host = host
    self.function = function
  }

  func problem(with request: ProcessRequest) -> ByteString? { nil }

  func start(_ child: ChildProcess, stdin: ByteString?) {
    let id = ObjectIdentifier(child)
    do {
      let arguments = try self.arguments(child.request, stdin)
      calls[id] = try ReplacedCall(host, function, arguments) { [weak self] result in
        self?.calls[id] = nil
        self?.end(child, result)
      }
    } catch {
      child.endReplaced(.stopped(host.flowError(thrown: error, op: nil), nil))
    }
  }

  func cancel(_ child: ChildProcess, because reason: any Error) {
    let timeout = (reason as? ProcessTimeout).map { FlowError.timeout(after: $0.limit) }
    guard let call = calls[ObjectIdentifier(child)] else { return child.endReplaced(.lost) }
    call.cancel(timeout ?? .from(reason))
  }

  /// `argv` and the options of `flow.exec`, as new tables.
  private func arguments(_ request: ProcessRequest, _ stdin: ByteString?) throws -> [LuaValue] {
    var fields: [(ByteString, LuaValue)] = [("capture", .boolean(request.capturesOutput))]
    switch request.input {
    case .inherited: fields.append(("stdin", .string("inherit")))
    case .file(let path):
      let file = try host.vm.makeTable(fields: [("file", .string(path))])
      fields.append(("stdin", .reference(file)))
    case .nothing, .bytes, .pipe: if let stdin { fields.append(("stdin", .string(stdin))) }
    }
    if let output = request.output { fields.append(("output", .string(output))) }
    if request.tees { fields.append(("tee", .boolean(true))) }
    if let cwd = request.cwd { fields.append(("cwd", .string(cwd))) }
    if let timeout = request.timeout { fields.append(("timeout", .number(timeout.inSeconds))) }
    if !request.environment.isEmpty {
      let variables = request.environment.map { name, value in
        (name, value.map { LuaValue.string($0) } ?? .boolean(false))
      }
      fields.append(("env", .reference(try host.vm.makeTable(fields: variables))))
    }
    return [
      .reference(try host.vm.makeTable(values: request.argv.map { .string($0) })),
      .reference(try host.vm.makeTable(fields: fields)),
    ]
  }

  /// Ends the program with what the function has returned.
  private func end(_ child: ChildProcess, _ returned: Result<LuaValue, FlowError>) {
    let name = child.request.programName
    do {
      switch try returned.get() {
      case .string(let text): child.endReplaced(status: 0, stdout: text, stderr: "")
      case .reference(let table) where table.kind == .table:
        let result = try result(name, table)
        child.endReplaced(status: result.status, stdout: result.stdout, stderr: result.stderr)
      case .nil: throw wrong(name, "nothing was returned, so it isn't replaced")
      case let other:
        throw wrong(name, "table or string expected, got \(host.kindName(of: other))")
      }
    } catch {
      child.endReplaced(.stopped(FlowError.from(error), nil))
    }
  }

  /// The result that a table describes.
  private func result(
    _ name: ByteString, _ table: LuaReference
  ) throws -> (status: UInt8, stdout: ByteString, stderr: ByteString) {
    var result: (status: UInt8, stdout: ByteString, stderr: ByteString) = (0, "", "")
    for (key, value) in try host.vm.pairs(of: table) {
      switch (key, value) {
      case (.string("status"), .integer(let number)):
        guard let status = UInt8(exactly: number) else { fallthrough }
        result.status = status
      case (.string("status"), _):
        throw wrong(name, "field 'status': integer from 0 to 255 expected, got \(shown(value))")
      case (.string("stdout"), .string(let text)): result.stdout = text
      case (.string("stderr"), .string(let text)): result.stderr = text
      case (.string(let key), _) where key == "stdout" || key == "stderr":
        throw wrong(name, "field '\(key)': string expected, got \(host.kindName(of: value))")
      default:
        throw wrong(
          name, "unknown field '\(shown(key))'; known are 'status', 'stderr', 'stdout'")
      }
    }
    return result
  }

  private func shown(_ value: LuaValue) -> ByteString {
    loop.secrets.redacted(FlowValue(value).logText).truncated(to: FlowValue.logLimit)
  }

  private var loop: FlowEventLoop { host.loop }

  private func wrong(_ name: ByteString, _ problem: ByteString) -> FlowError {
    .usage("the function 'exec' of testing.run, for the program '\(name)': \(problem)")
  }
}

/// Refuses the programs of a test.
final class RefusedPrograms: ProcessReplacement {
  private let hint: ByteString

  /// - Parameter isWorker: Whether the refused programs are those of a worker, where the function of
  ///   the test can't be called.
  init(isWorker: Bool) {
    hint =
      isWorker
      ? "let its op run on the main thread there, or pass exec = \"real\" to testing.run"
      : "pass exec = function(argv, options) … end, or exec = \"real\", to testing.run"
  }

  func problem(with request: ProcessRequest) -> ByteString? {
    "program '\(request.programName)' isn't replaced in this test: \(hint)"
  }

  func start(_ child: ChildProcess, stdin: ByteString?) {}
  func cancel(_ child: ChildProcess, because reason: any Error) {}
}

/// The treatment of code that reaches out of the process by a test, of one sort: programs, for example.
enum OutsideReplacement {
  /// It is an error: a test doesn't reach out of the process by mistake.
  case refused
  /// It happens really.
  case real
  /// A function of the script is called instead.
  case function(LuaReference)
  /// A table of the script says what happens instead.
  case table(LuaReference)

  /// Reads an option of `testing.run`: a function, `"real"`, or a table where that is allowed.
  init(_ options: Options, _ name: ByteString, allowsTable: Bool = false) throws {
    let expected = allowsTable ? "table, function or \"real\"" : "function or \"real\""
    switch options.value(name) {
    case nil: self = .refused
    case .string("real"): self = .real
    case .reference(let reference)? where reference.kind == .function: self = .function(reference)
    case .reference(let reference)? where allowsTable && reference.kind == .table:
      self = .table(reference)
    case .string(let text)?:
      throw options.arguments.wrong(
        options.index, "field '\(name)': \(expected) expected, got \"\(text)\"")
    default: throw options.wrong(name, expected: expected)
    }
  }

  /// The replacement where there are no options.
  init() { self = .refused }
}

/// A call of a test's function for something outside of the process. The function may wait.
final class ReplacedCall: TaskObserver {
  private let host: ScriptHost
  private let task: AnyFlowTask
  private var completion: ((Result<LuaValue, FlowError>) -> Void)?

  /// Calls the function, up to its first wait. `completion` is called once, later, with what the
  /// function returns, or with its error.
  init(
    _ host: ScriptHost, _ function: LuaReference, _ arguments: [LuaValue],
    completion: @escaping (Result<LuaValue, FlowError>) -> Void
  ) throws {
    self.host = host
    self.completion = completion
    // No owner: what it stands for has one.
    let task = SpawnedTask(host, try host.vm.uniqueReference(to: function), arguments)
    self.task = task
    task.markObserved()
    task.begin()
    task.observe(self)
  }

  /// Stops the function.
  func cancel(_ error: FlowError) { task.stop(error) }

  func run() {
    guard let completion = completion.take() else { return }
    do {
      if let error = try host.error(of: task) { return completion(.failure(error)) }
      completion(.success(try host.luaResult(of: task)))
    } catch {
      completion(.failure(host.flowError(thrown: error, op: nil)))
    }
  }
}
