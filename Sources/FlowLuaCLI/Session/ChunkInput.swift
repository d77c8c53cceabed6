internal import FlowEngine
internal import FlowScripting
internal import LuaVM

/// Builds chunks from lines.
///
/// On a terminal, variables last and a line may continue the previous chunk. Other input is handled
/// as by the stand-alone interpreter.
final class ChunkInput {
  /// The typed code, compiled.
  struct Chunk {
    let function: LuaReference
    /// All its lines, and those of the chunk that it continues.
    let text: [UInt8]
    /// The text to which a continuing line is appended, once this chunk has run.
    let target: ChunkReader.Target?
    let isExpression: Bool
    /// Whether it continues the previous chunk.
    let isContinuation: Bool
    let saved: Saved
  }

  /// The text that does the same in a file.
  struct Saved {
    let text: [UInt8]
    /// Whether that text replaces the previous chunk's.
    let isWhole: Bool
  }

  enum Reading {
    case chunk(Chunk)
    /// A line for the session itself, such as `.load file`.
    case command(SessionCommand)
    /// Ctrl-C has dropped the typed text.
    case dropped
    case end
  }

  /// The expression that a line beginning with `:` or `.` continues.
  private struct Previous {
    let text: [UInt8]
    /// The prefix that makes a chunk of the line.
    let prefix: [UInt8]
  }

  private let vm: LuaVM
  private let source: any LineSource
  /// nil: each chunk has its own, as lua5.4 has it.
  private let locals: SessionLocals?
  private var previous: Previous?
  /// The finished lines of the current chunk, for completion.
  private(set) var pending: [UInt8] = []

  init(_ vm: LuaVM, _ source: any LineSource, _ locals: SessionLocals?) {
    self.vm = vm
    self.source = source
    self.locals = locals
  }

  /// Reads an expression or a statement, of as many lines as necessary.
  func read() throws -> Reading {
    pending = []
    var text: [UInt8]
    switch source.readLine(prompt("_PROMPT") ?? "> ", indentation: []) {
    case .line(let line): text = line
    case .dropped: return .dropped
    case .end: return .end
    }
    var before: Previous?
    if locals != nil {
      if let command = SessionCommand(text, isDefined: isDefined) {
        source.remember(text)
        return .command(command)
      }
      if Self.continues(text) {
        guard let previous else {
          source.remember(text)
          throw LuaError(
            .syntax, "stdin:1: there is no result or assignment that this line could continue")
        }
        before = previous
      }
    }
    var isDropped = false
    func whole(_ text: [UInt8]) -> [UInt8] {
      before.map { $0.text + [UInt8(ascii: "\n")] + text } ?? text
    }
    defer {
      pending = []
      if !isDropped { source.remember(whole(text)) }
    }
    while true {
      do {
        return .chunk(try compile(text, whole(text), before))
      } catch let error as IncompleteChunk {
        pending = (before?.prefix ?? []) + text + [UInt8(ascii: "\n")]
        let layout = ChunkLayout(text)
        let indentation = locals == nil ? [] : layout.indentation
        switch source.readLine(prompt("_PROMPT2") ?? ">> ", indentation: indentation) {
        case .line(let next):
          text += [UInt8(ascii: "\n")] + (source.indents ? layout.placed(next) : next)
        case .dropped:
          isDropped = true
          return .dropped
        case .end: throw error.error
        }
      }
    }
  }

  /// A chunk that isn't typed line by line.
  func compile(_ text: [UInt8], name: String) throws -> Chunk {
    let function =
      try locals?.load(text, chunkName: name)
      ?? vm.load(ByteString(text), chunkName: name, mode: .any)
    return Chunk(
      function: function, text: text, target: nil, isExpression: false, isContinuation: false,
      saved: Saved(text: text, isWhole: false))
  }

  /// Adds a chunk that wasn't typed line by line to the history.
  func remember(_ text: [UInt8]) { source.remember(text) }

  /// Stores the chunk that the next line may continue.
  ///
  /// - Parameters:
  ///   - chunk: The chunk that has run; nil: there is nothing to continue.
  ///   - hasResult: Whether `_` is its result.
  func finish(_ chunk: Chunk?, hasResult: Bool) {
    guard let chunk else {
      previous = nil
      return
    }
    let prefix: [UInt8]
    switch chunk.target {
    case .local(let name, let isConstant):
      prefix =
        (isConstant ? "local ".bytes + name + " <const>".bytes : name)
        + " = ".bytes + name
    case .place(let place): prefix = place + " = ".bytes + place
    case nil:
      guard hasResult else {
        previous = nil
        return
      }
      prefix = "_".bytes
    }
    previous = Previous(text: chunk.text, prefix: prefix)
  }

  // MARK: Compiling

  /// The chunk needs further lines.
  private struct IncompleteChunk: Error {
    let error: any Error
  }

  private func compile(
    _ text: [UInt8], _ whole: [UInt8], _ before: Previous?
  ) throws -> Chunk {
    let isReturn = before == nil && text.first == UInt8(ascii: "=")
    let code =
      isReturn ? "return ".bytes + text.dropFirst() : (before?.prefix ?? []) + text
    func chunk(_ function: LuaReference, isExpression: Bool) -> Chunk {
      Chunk(
        function: function, text: whole,
        target: isExpression || locals == nil ? nil : ChunkReader(code).target,
        isExpression: isExpression, isContinuation: before != nil,
        saved: saved(whole, isReturn ? Array(text.dropFirst()) : code, isExpression: isExpression))
    }
    // lua5.4 doesn't accept expressions of several lines.
    let mayBeExpression = locals != nil || !text.contains(UInt8(ascii: "\n"))
    let expression = "return ".bytes + code
    if mayBeExpression, let function = try? load(expression + [UInt8(ascii: ";")]) {
      return chunk(function, isExpression: true)
    }
    do {
      return chunk(try load(code), isExpression: isReturn)
    } catch {
      if Self.isIncomplete(error) { throw IncompleteChunk(error: error) }
      if locals != nil {
        do { _ = try load(expression) } catch let other where Self.isIncomplete(other) {
          throw IncompleteChunk(error: other)
        } catch {}
      }
      throw error
    }
  }

  /// An expression is no statement, so a file has it as the value of `_`.
  private func saved(_ whole: [UInt8], _ code: [UInt8], isExpression: Bool) -> Saved {
    func isChunk(_ text: [UInt8]) -> Bool {
      (try? vm.load(ByteString(text), chunkName: "=saved")) != nil
    }
    let value = "_ = ".bytes
    for text in [whole, value + whole] where isChunk(text) {
      return Saved(text: text, isWhole: true)
    }
    return Saved(text: isExpression ? value + code : code, isWhole: false)
  }

  private func load(_ code: [UInt8]) throws -> LuaReference {
    try locals?.load(code, chunkName: "=stdin") ?? vm.load(ByteString(code), chunkName: "=stdin")
  }

  private static func isIncomplete(_ error: any Error) -> Bool {
    guard let error = error as? LuaError, error.code == .syntax else { return false }
    return error.message.hasSuffix("<eof>")
  }

  /// Whether a line begins with `:name` or `.name`.
  static func continues(_ line: [UInt8]) -> Bool {
    let tokens = LuaLexer.tokens(line)
    guard tokens.count > 1, tokens[0].range.count == 1, tokens[1].kind == .name else {
      return false
    }
    let first = line[tokens[0].range.lowerBound]
    return first == UInt8(ascii: ":") || first == UInt8(ascii: ".")
  }

  /// Whether a script or the session has a variable of that name.
  private func isDefined(_ name: String) -> Bool {
    if locals?.contains(ByteString(name)) == true { return true }
    guard let globals = try? vm.globals(),
      let value = try? vm.rawGet(.string(ByteString(name)), in: globals)
    else { return false }
    return !value.isNil
  }

  /// The value of a global variable as a string; nil: the default.
  private func prompt(_ name: ByteString) -> ByteString? {
    guard let value = try? vm.global(name.description), !value.isNil else { return nil }
    return (try? vm.tostring(value)).map { ByteString($0.bytes) }
  }
}
