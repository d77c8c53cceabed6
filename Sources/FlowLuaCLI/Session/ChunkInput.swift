internal import FlowEngine
internal import FlowScripting
internal import LuaVM

/// Makes chunks of lines.
///
/// On a terminal, variables last and a line may continue the chunk before it; other input is treated as
/// the stand-alone interpreter does it.
final class ChunkInput {
  /// What was typed, compiled.
  struct Chunk {
    let function: LuaReference
    /// All its lines, and those of the chunk that it continues.
    let text: [UInt8]
    /// The text that a line that continues this chunk is appended to, once this has run.
    let target: ChunkReader.Target?
    let isExpression: Bool
    /// Whether it continues the chunk before it.
    let isContinuation: Bool
    let saved: Saved
  }

  /// What a file is to have that does the same.
  struct Saved {
    let text: [UInt8]
    /// Whether that is in place of the chunk before.
    let isWhole: Bool
  }

  enum Reading {
    case chunk(Chunk)
    /// A line that is for the session itself, such as `.load file`.
    case command(SessionCommand)
    /// Ctrl-C has dropped what was typed.
    case dropped
    case end
  }

  /// What a line that begins with `:` or `.` continues.
  private struct Previous {
    let text: [UInt8]
    /// Stands before the line to make a chunk of it.
    let prefix: [UInt8]
  }

  private let vm: LuaVM
  private let source: any LineSource
  /// nil: as in lua5.4, where each chunk has its own.
  private let locals: SessionLocals?
  private var previous: Previous?
  /// The lines of the present chunk that are finished, for completion.
  private(set) var pending: [UInt8] = []

  init(_ vm: LuaVM, _ source: any LineSource, _ locals: SessionLocals?) {
    self.vm = vm
    self.source = source
    self.locals = locals
  }

  /// An expression, or a statement, with as many lines as it takes.
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
    let function = try locals?.load(text, name: name) ?? vm.load(LuaString(text), name: name)
    return Chunk(
      function: function, text: text, target: nil, isExpression: false, isContinuation: false,
      saved: Saved(text: text, isWhole: false))
  }

  /// Keeps a chunk that wasn't typed line by line, to be recalled.
  func remember(_ text: [UInt8]) { source.remember(text) }

  /// Stores what the next line may continue.
  ///
  /// - Parameters:
  ///   - chunk: The one that has run; nil: there is nothing to continue.
  ///   - hasResult: Whether `_` is what it gave.
  func finish(_ chunk: Chunk?, hasResult: Bool) {
    guard let chunk else {
      previous = nil
      return
    }
    let prefix: [UInt8]
    switch chunk.target {
    case .local(let name, let isConstant):
      prefix =
        (isConstant ? Array("local ".utf8) + name + Array(" <const>".utf8) : name)
        + Array(" = ".utf8) + name
    case .place(let place): prefix = place + Array(" = ".utf8) + place
    case nil:
      guard hasResult else {
        previous = nil
        return
      }
      prefix = Array("_".utf8)
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
      isReturn ? Array("return ".utf8) + text.dropFirst() : (before?.prefix ?? []) + text
    func chunk(_ function: LuaReference, isExpression: Bool) -> Chunk {
      Chunk(
        function: function, text: whole,
        target: isExpression || locals == nil ? nil : ChunkReader(code).target,
        isExpression: isExpression, isContinuation: before != nil,
        saved: saved(whole, isReturn ? Array(text.dropFirst()) : code, isExpression: isExpression))
    }
    // lua5.4 takes no expression of several lines.
    let mayBeExpression = locals != nil || !text.contains(UInt8(ascii: "\n"))
    let expression = Array("return ".utf8) + code
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

  /// An expression is no statement, so that a file has it as the value of `_`.
  private func saved(_ whole: [UInt8], _ code: [UInt8], isExpression: Bool) -> Saved {
    func isChunk(_ text: [UInt8]) -> Bool {
      (try? vm.load(LuaString(text), name: "=saved", mode: "t")) != nil
    }
    let value = Array("_ = ".utf8)
    for text in [whole, value + whole] where isChunk(text) {
      return Saved(text: text, isWhole: true)
    }
    return Saved(text: isExpression ? value + code : code, isWhole: false)
  }

  private func load(_ code: [UInt8]) throws -> LuaReference {
    try locals?.load(code, name: "=stdin") ?? vm.load(LuaString(code), name: "=stdin")
  }

  private static func isIncomplete(_ error: any Error) -> Bool {
    guard let error = error as? LuaError, error.code == .syntax else { return false }
    return error.message.bytes.suffix(5).elementsEqual("<eof>".utf8)
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
    if locals?.contains(LuaString(name)) == true { return true }
    guard let globals = try? vm.globals(),
      let value = try? vm.rawGet(.string(LuaString(name)), in: globals)
    else { return false }
    return !value.isNil
  }

  /// What a global variable holds, as a string; nil: the default.
  private func prompt(_ name: LuaString) -> ByteString? {
    guard let value = try? vm.global(name), !value.isNil else { return nil }
    return (try? vm.tostring(value)).map { ByteString($0.bytes) }
  }
}
