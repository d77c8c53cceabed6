internal import FlowEngine
@_spi(Scripting) package import LuaVM

/// The local variables of a session: those at the top level of a chunk are visible to later chunks.
///
/// A chunk is compiled inside functions that declare the earlier variables which it names. Its own
/// upvalues are joined to those variables, so that all functions that captured one share it. After
/// each declaration of its own there is a call that passes a function with the new variable as its
/// upvalue. All of this is put on the line to which it belongs, so that lines, messages and
/// tracebacks are those of the typed text.
package final class SessionLocals {
  private let vm: LuaVM
  private let scope: LuaReference
  private let cells: LuaReference
  private let attributes: LuaReference
  private let closer: LuaReference

  /// No function has more local variables than this limit minus ten.
  private static let mostAtOnce = 190

  /// Makes an empty one.
  package init(_ vm: LuaVM) throws {
    self.vm = vm
    let scope = try vm.makeSessionScope()
    func part(_ index: Int) throws -> LuaReference {
      guard case .reference(let table) = try vm.element(index, of: scope) else { return scope }
      return table
    }
    self.scope = scope
    cells = try part(1)
    attributes = try part(2)
    closer = try part(4)
  }

  /// The names of the variables with this prefix, in no order.
  package func names(startingWith start: [UInt8] = [], limit: Int = 1000) -> [ByteString] {
    (try? vm.stringKeys(of: cells, startingWith: start, limit: limit)) ?? []
  }

  /// Whether there is a variable.
  package func contains(_ name: ByteString) -> Bool {
    guard let cell = try? vm.rawGet(.string(name), in: cells) else { return false }
    return !cell.isNil
  }

  /// The value of a variable; nil if there is none.
  package func value(of name: ByteString) -> LuaValue? {
    contains(name) ? try? vm.sessionLocal(name, in: scope) : nil
  }

  /// Compiles a chunk.
  ///
  /// - Parameters:
  ///   - text: The chunk.
  ///   - name: Lua's chunk name.
  /// - Returns: The compiled chunk, a function.
  /// - Throws: A `LuaError` of code `syntax` with Lua's message about the typed text.
  package func load(_ text: [UInt8], chunkName name: String) throws -> LuaReference {
    // Its errors are reported for the unchanged text.
    let plain = try vm.load(ByteString(text), chunkName: name)
    let names = usedNames(text)
    let known = Array(names.filter { contains(ByteString($0)) })
    let declarations = ChunkReader(text).declarations
    // A variable `_ENV` is used without being named.
    let environment = "_ENV".bytes
    let earlier =
      contains(ByteString(environment)) && !names.contains(environment)
      ? known + [environment] : known
    if earlier.isEmpty, declarations.isEmpty { return plain }
    var keeper = "_KEEP".bytes
    while names.contains(keeper) || contains(ByteString(keeper)) {
      keeper.append(UInt8(ascii: "_"))
    }

    var code: [UInt8] = []
    var levels = 0
    var left = earlier.map { $0 + (isConstant($0) ? "<const>".bytes : []) }[...]
    repeat {
      let group = left.prefix(Self.mostAtOnce)
      left = left.dropFirst(group.count)
      levels += 1
      let declared = ([keeper] + group).joined(separator: [UInt8(ascii: ",")])
      code += "local ".bytes + declared
      code += (left.isEmpty ? " return function(...) " : " return function() ").bytes
    } while !left.isEmpty
    code += Self.handingOver(text, declarations, keeper)
    // The text may end in a comment.
    code += Array(("\n" + String(repeating: "end ", count: levels)).utf8)
    return try vm.loadSessionChunk(
      ByteString(code), name: ByteString(name), scope: scope, levels: levels,
      keeper: ByteString(keeper))
  }

  private func isConstant(_ name: [UInt8]) -> Bool {
    guard let attribute = try? vm.rawGet(.string(ByteString(name)), in: attributes) else {
      return false
    }
    return !attribute.isNil
  }

  private func usedNames(_ text: [UInt8]) -> Set<[UInt8]> {
    Set(LuaLexer.tokens(text).filter { $0.kind == .name }.map { Array(text[$0.range]) })
  }

  /// The chunk, with a call for each of its variables after the declaration. `<close>` becomes
  /// `<const>`: it is closed at the end of the session.
  static func handingOver(
    _ text: [UInt8], _ declarations: [ChunkReader.Declaration], _ keeper: [UInt8]
  ) -> [UInt8] {
    var code: [UInt8] = []
    var done = 0
    for declaration in declarations {
      var calls: [UInt8] = []
      for each in declaration.names where each.name != "_".bytes {
        let attribute = each.attribute.map { Array(text[$0]) }
        calls += [UInt8(ascii: " ")] + keeper + "(\"".bytes + each.name
        calls += "\",function()return ".bytes + each.name + " end".bytes
        if let attribute { calls += ",\"".bytes + attribute + "\"".bytes }
        calls += ");".bytes
      }
      for range in declaration.names.compactMap(\.attribute) {
        code += text[done..<range.lowerBound]
        code += "const".bytes
        done = range.upperBound
      }
      code += text[done..<declaration.end] + calls
      done = declaration.end
    }
    return code + text[done...]
  }

  /// Closes the variables declared with `<close>`, as at the end of a block: the last one first. If
  /// the state is closed before, as by `os.exit(n, true)`, they are closed with it.
  ///
  /// - Throws: The error that a `__close` raised.
  package func close() throws {
    _ = try vm.call(closer, [.reference(scope)], traceback: true)
  }
}

/// A typed chunk, while it runs: Ctrl-C cancels everything it has started, and nothing that was
/// running before.
final class SessionChunk {
  let loop: FlowEventLoop
  /// The tasks that its own code has started; tasks that those have started belong to them.
  let tasks = OwnedTasks()
  /// The newest task when an interruption was raised in busy code.
  private(set) var mark: UInt64?

  init(on loop: FlowEventLoop) {
    self.loop = loop
  }

  /// Whether an interruption was raised in an op or task, whose failure the chunk may not notice.
  private(set) var isInterruptedWithin = false

  /// Called when the interruption is raised; waiting is impossible then.
  ///
  /// - Parameter isWithin: Whether it is raised in an op or task.
  func noteInterruption(isWithin: Bool) {
    mark = loop.newestTask
    if isWithin { isInterruptedWithin = true }
  }

  /// Cancels everything started since: code that caught the interruption may have continued.
  func keepInterrupted() {
    guard let mark else { return tasks.abandon() }
    let kept = OwnedTasks()
    for task in tasks.all where task.id > mark { kept.add(task) }
    kept.abandon()
  }
}

/// The session whose code a host runs.
package final class HostSession: HostService {
  /// Whether it reads the standard input of the process, so that code of the session can't.
  package var readsInput = false
  /// The chunk that is running.
  var chunk: SessionChunk?
}
