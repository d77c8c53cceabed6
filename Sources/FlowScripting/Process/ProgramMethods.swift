internal import FlowEngine
internal import FlowSystem
@_spi(Scripting) internal import LuaVM

/// The methods of a task that only a program has. They are made when a script first uses one of them.
final class ProgramMethods: HostService {
  /// `lines`, `write` and `close_stdin`.
  let methods: [ByteString: LuaReference]
  /// Results of `program:lines()`.
  let lines: LuaObjectType<ProgramLines>

  /// Those of a host.
  static func of(_ host: ScriptHost) throws -> ProgramMethods {
    try host.service { try ProgramBindings(host: host).makeMethods() }
  }

  fileprivate init(methods: [ByteString: LuaReference], lines: LuaObjectType<ProgramLines>) {
    self.methods = methods
    self.lines = lines
  }
}

/// Makes the methods, and performs them.
private struct ProgramBindings {
  let host: ScriptHost

  func makeMethods() throws -> ProgramMethods {
    ProgramMethods(
      methods: [
        "lines": try host.vm.makeFunction(host.bind { try Self(host: $0).lines($1) }),
        "write": try host.vm.makeFunction(host.bind { try Self(host: $0).write($1) }),
        "close_stdin": try host.vm.makeFunction(host.bind { try Self(host: $0).closeInput($1) }),
      ],
      lines: try host.vm.defineObjectType(
        "lines", of: ProgramLines.self, methods: [:],
        metamethods: { [unowned host] _ in
          [
            "__call": LuaMethod(host.bind { try Self(host: $0).nextLine($1) }),
            "__close": LuaMethod(host.bind { try Self(host: $0).closeLines($1) }),
            "__tostring": LuaMethod(
              host.bind { _, call in call.answer(.string("lines of a program")) }),
          ]
        }))
  }

  private func program(_ call: LuaCall, _ function: String) throws -> (ProcessTask, Arguments) {
    let (task, arguments) = try host.task(call, function, "task of flow.exec")
    guard let program = task as? ProcessTask else {
      throw host.usage(
        call, "calling '\(function)' on bad self (task of flow.exec expected, got \(task.title))")
    }
    return (program, arguments)
  }

  /// `program:lines()`: an iterator, which is also the value that its loop closes.
  private func lines(_ call: LuaCall) throws -> LuaAnswer {
    let (program, _) = try program(call, "lines")
    guard program.request.capturesOutput else {
      throw host.usage(call, "bad use of 'lines' (the program has capture = false)")
    }
    let type = try ProgramMethods.of(host).lines
    let lines = try host.vm.value(of: ProgramLines(program.lines(), host.loop), type)
    return call.answer([lines, .nil, .nil, lines])
  }

  /// One step of the iterator: a line and the name of its stream, or nil at the end.
  private func nextLine(_ call: LuaCall) throws -> LuaAnswer {
    guard let lines = call.object(1, try ProgramMethods.of(host).lines) else {
      throw Arguments(host, call, method: "__call").wrongSelf("lines")
    }
    if lines.isClosed { return call.answer(.nil) }
    let wait = LineWait(lines)
    switch lines.lines.next(for: wait) {
    case .line(let line): return call.answer(LineWait.values(of: line))
    case .end: return call.answer(.nil)
    case .later: return try call.wait(wait)
    }
  }

  /// The end of the loop.
  private func closeLines(_ call: LuaCall) throws -> LuaAnswer {
    call.object(1, try ProgramMethods.of(host).lines)?.close()
    return call.answer()
  }

  /// `program:write(…)`: writes its arguments, as `file:write` does, and returns the program.
  private func write(_ call: LuaCall) throws -> LuaAnswer {
    let (program, arguments) = try writableProgram(call, "write")
    var bytes: [UInt8] = []
    for index in 0..<arguments.count {
      bytes += try OpArguments(arguments).text(index + 1).bytes
    }
    if program.isInputClosed {
      throw host.usage(call, "bad use of 'write' (close_stdin was called)")
    }
    let wait = WriteWait(host, program)
    let text = ByteString(bytes)
    host.loop.memory?.add(text)
    switch program.write(text, for: wait) {
    case .done: return call.answer(argument: 1)
    case .closed: throw WriteWait.brokenPipe(host, call, program)
    case .later: return try call.wait(wait)
    }
  }

  /// `program:close_stdin()`.
  private func closeInput(_ call: LuaCall) throws -> LuaAnswer {
    let (program, _) = try writableProgram(call, "close_stdin")
    program.closeInput()
    return call.answer()
  }

  private func writableProgram(
    _ call: LuaCall, _ function: String
  ) throws -> (ProcessTask, Arguments) {
    let (program, arguments) = try program(call, function)
    guard case .pipe = program.request.input else {
      throw host.usage(call, "bad use of '\(function)' (the program doesn't have stdin = \"pipe\")")
    }
    return (program, arguments)
  }
}

/// A reader of a program's lines, held by a loop of a script.
final class ProgramLines {
  let lines: ProcessLines
  private let loop: FlowEventLoop
  private(set) var isClosed = false

  init(_ lines: ProcessLines, _ loop: FlowEventLoop) {
    self.lines = lines
    self.loop = loop
    lines.open()
  }

  // Not every loop that a script leaves closes its values in Lua 5.4.4. The state releases this within
  // a collection, which is no time to continue a program.
  deinit {
    guard !isClosed else { return }
    loop.enqueue { [lines] in lines.close() }
  }

  func close() {
    guard !isClosed else { return }
    isClosed = true
    lines.close()
  }
}

/// Waits for a line of a program.
private final class LineWait: LuaWait, ProcessLineReader {
  private let reader: ProgramLines
  private var line: ProcessLine?

  override var subject: String { "line of a program" }

  init(_ reader: ProgramLines) {
    self.reader = reader
  }

  func received(_ line: ProcessLine?) {
    self.line = line
    ready()
  }

  override func abandon() { reader.lines.cancel(self) }

  override func discard() {
    if let line = line.take() { reader.lines.putBack(line) }
  }

  override func finish(_ call: LuaCall) throws -> LuaAnswer {
    call.answer(line.take().map(Self.values) ?? [.nil])
  }

  static func values(of line: ProcessLine) -> [LuaValue] {
    [.string(line.text), .string(line.stream == .stdout ? "stdout" : "stderr")]
  }
}

/// Waits until a program has read enough of what was written to it.
private final class WriteWait: LuaWait, ProcessInputWriter {
  private let host: ScriptHost
  private let program: ProcessTask
  private var isOpen = true

  override var subject: String { "room in the input of a program" }

  init(_ host: ScriptHost, _ program: ProcessTask) {
    self.host = host
    self.program = program
  }

  func inputAdvanced(isOpen: Bool) {
    self.isOpen = isOpen
    ready()
  }

  override func abandon() { program.cancelWrite(self) }

  override func finish(_ call: LuaCall) throws -> LuaAnswer {
    guard isOpen else { throw Self.brokenPipe(host, call, program) }
    return call.answer(try host.value(of: program))
  }

  /// The error for a program that has closed its input, or has ended.
  static func brokenPipe(
    _ host: ScriptHost, _ call: LuaCall, _ program: ProcessTask
  ) -> any Error {
    let name = program.request.programName
    let message = host.loop.secrets.redacted(
      "\(call.position)can't write to '\(name)': it has closed its input")
    let error = FlowError(
      .error, message, traceback: host.vm.traceback(level: 1), code: Int64(EPIPE))
    do {
      let fields: [(ByteString, LuaValue)] = [
        ("code", .integer(Int64(EPIPE))), ("name", "EPIPE"),
      ]
      let table = try host.makeError(error, fields: fields)
      return LuaError(value: .reference(table), message: message)
    } catch {
      return error
    }
  }
}
