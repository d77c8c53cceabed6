public import LuaVM

/// The local variables of a session: those at the top level of a chunk are seen by the chunks that follow.
///
/// A chunk is compiled inside functions that declare the earlier variables which it names. Its own upvalues
/// are joined to those variables, so that whatever has captured one shares it. After each declaration of
/// its own stands a call that passes a function with the new variable as its upvalue. All is put into
/// the line where it belongs: lines, messages and tracebacks are those of what was typed.
public final class SessionLocals {
  private let vm: LuaVM
  private let scope: LuaReference
  private let cells: LuaReference
  private let attributes: LuaReference
  private let closer: LuaReference

  /// No function has more local variables than this one less ten.
  private static let mostAtOnce = 190

  /// Makes an empty one.
  public init(_ vm: LuaVM) throws {
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

  /// The names of the variables that begin like this, in no order.
  public func names(startingWith start: [UInt8] = [], limit: Int = 1000) -> [LuaString] {
    (try? vm.stringKeys(of: cells, startingWith: start, limit: limit)) ?? []
  }

  /// Whether there is a variable.
  public func contains(_ name: LuaString) -> Bool {
    guard let cell = try? vm.rawGet(.string(name), in: cells) else { return false }
    return !cell.isNil
  }

  /// The value of a variable; nil when there is none.
  public func value(of name: LuaString) -> LuaValue? {
    contains(name) ? try? vm.sessionLocal(name, in: scope) : nil
  }

  /// Compiles a chunk.
  ///
  /// - Parameters:
  ///   - text: The chunk.
  ///   - name: Lua's chunk name.
  /// - Returns: The compiled chunk, a function.
  /// - Throws: A `LuaError` of code `syntax` with Lua's message about what was typed.
  public func load(_ text: [UInt8], name: String) throws -> LuaReference {
    // What is wrong with it is said of the text as it is.
    let plain = try vm.load(LuaString(text), name: name, mode: "t")
    let names = usedNames(text)
    let known = Array(names.filter { contains(LuaString($0)) })
    let declarations = ChunkReader(text).declarations
    // A variable `_ENV` is used without being named.
    let environment = Array("_ENV".utf8)
    let earlier =
      contains(LuaString(environment)) && !names.contains(environment)
      ? known + [environment] : known
    if earlier.isEmpty, declarations.isEmpty { return plain }
    var keeper = Array("_KEEP".utf8)
    while names.contains(keeper) || contains(LuaString(keeper)) { keeper.append(UInt8(ascii: "_")) }

    var code: [UInt8] = []
    var levels = 0
    var left = earlier.map { $0 + (isConstant($0) ? Array("<const>".utf8) : []) }[...]
    repeat {
      let group = left.prefix(Self.mostAtOnce)
      left = left.dropFirst(group.count)
      levels += 1
      let declared = ([keeper] + group).joined(separator: [UInt8(ascii: ",")])
      code += Array("local ".utf8) + declared
      code += Array((left.isEmpty ? " return function(...) " : " return function() ").utf8)
    } while !left.isEmpty
    code += Self.handingOver(text, declarations, keeper)
    // A comment may stand at the end.
    code += Array(("\n" + String(repeating: "end ", count: levels)).utf8)
    return try vm.loadSessionChunk(
      LuaString(code), name: LuaString(name), scope: scope, levels: levels,
      keeper: LuaString(keeper))
  }

  private func isConstant(_ name: [UInt8]) -> Bool {
    guard let attribute = try? vm.rawGet(.string(LuaString(name)), in: attributes) else {
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
      for each in declaration.names where each.name != Array("_".utf8) {
        let attribute = each.attribute.map { Array(text[$0]) }
        calls += [UInt8(ascii: " ")] + keeper + Array("(\"".utf8) + each.name
        calls += Array("\",function()return ".utf8) + each.name + Array(" end".utf8)
        if let attribute { calls += Array(",\"".utf8) + attribute + Array("\"".utf8) }
        calls += Array(");".utf8)
      }
      for range in declaration.names.compactMap(\.attribute) {
        code += text[done..<range.lowerBound]
        code += Array("const".utf8)
        done = range.upperBound
      }
      code += text[done..<declaration.end] + calls
      done = declaration.end
    }
    return code + text[done...]
  }

  /// Closes the variables declared with `<close>`, as at the end of a block: the last one first. When
  /// the state is closed before, as `os.exit(n, true)` does it, they are closed with it.
  ///
  /// - Throws: What a `__close` raised.
  public func close() throws {
    _ = try vm.call(closer, [.reference(scope)], traceback: true)
  }
}
