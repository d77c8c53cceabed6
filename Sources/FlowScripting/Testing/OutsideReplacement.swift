@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// What a test does about code that reaches out of the process, of one sort: programs, for example.
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
