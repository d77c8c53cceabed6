@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

extension ScriptValue: RefillableValue {
  func refill(from other: any OpaqueValue) throws {
    guard reference.kind == .table, let other = other as? ScriptValue,
      other.reference.kind == .table, other.reference.vm === reference.vm
    else { return }
    var filling = TableFilling(vm: reference.vm)
    try filling.fill(reference, from: other.reference)
  }
}

/// Gives tables the content that copies of them have. Tables within them that have the content of a copy stay the same ones,
/// wherever they are now; for any other copy there is a new one, as nobody knows whether it was changed or replaced.
struct TableFilling {
  private let vm: LuaVM
  /// The tables that take the places of copies, by the identities of these.
  private var filled: [UInt: LuaReference] = [:]
  /// The tables that have to be filled: a list, so that no depth of nesting recurses.
  private var open: [(table: LuaReference, copy: LuaReference)] = []
  /// How many bytes of content are compared; tables beyond them are new ones.
  private var room = 64 << 20

  init(vm: LuaVM) { self.vm = vm }

  private typealias Pair = (key: LuaValue, value: LuaValue)

  /// The place of a table within another one.
  private enum Place: Hashable {
    case name(ByteString)
    case index(Int64)

    init?(_ key: LuaValue) {
      switch key {
      case .string(let name): self = .name(name)
      case .integer(let index): self = .index(index)
      default: return nil
      }
    }
  }

  /// A table within another one.
  private final class Part {
    let place: Place?
    let table: LuaReference
    /// Nil if it can't be compared.
    var content: [UInt8]?
    var isFree = true

    init(_ place: Place?, _ table: LuaReference) { (self.place, self.table) = (place, table) }
  }

  /// Gives a table the content of a copy.
  mutating func fill(_ table: LuaReference, from copy: LuaReference) throws {
    use(table, for: copy)
    while let (table, copy) = open.popLast() { try fillOne(table, from: copy) }
  }

  private mutating func use(_ table: LuaReference, for copy: LuaReference) {
    filled[vm.identity(of: copy)] = table
    open.append((table, copy))
  }

  private mutating func fillOne(_ table: LuaReference, from copy: LuaReference) throws {
    let after = try vm.pairs(of: copy)
    let before = try vm.pairs(of: table)
    if table === copy {
      // A new table, which may refer to others.
      for part in parts(after) where filled[vm.identity(of: part.table)] == nil {
        use(part.table, for: part.table)
      }
    } else {
      pair(try compared(parts(after)), with: try compared(parts(before)))
    }
    for (key, _) in before { try vm.set(.nil, at: key, in: table) }
    for (key, value) in after { try vm.set(present(value), at: present(key), in: table) }
  }

  /// Decides which tables take the places of copies.
  private mutating func pair(_ copies: [Part], with parts: [Part]) {
    var places: [Place: Part] = [:]
    for part in parts { if let place = part.place { places[place] = part } }
    func pair(_ find: (Part) -> Part?) {
      for copy in copies where filled[vm.identity(of: copy.table)] == nil {
        guard let part = find(copy), part.isFree else { continue }
        part.isFree = false
        filled[vm.identity(of: copy.table)] = part.table
      }
    }
    // Those that haven't changed: where they were, then elsewhere.
    pair { copy in
      guard let content = copy.content, let part = copy.place.flatMap({ places[$0] })
      else { return nil }
      return part.content == content ? part : nil
    }
    var contents: [[UInt8]: [Part]] = [:]
    for part in parts.reversed() where part.isFree {
      if let content = part.content { contents[content, default: []].append(part) }
    }
    pair { $0.content.flatMap { contents[$0]?.popLast() } }
    for copy in copies where filled[vm.identity(of: copy.table)] == nil {
      use(copy.table, for: copy.table)
    }
  }

  private func parts(_ pairs: [Pair]) -> [Part] {
    pairs.compactMap { key, value in
      guard case .reference(let table) = value, table.kind == .table else { return nil }
      return Part(Place(key), table)
    }
  }

  private mutating func compared(_ parts: [Part]) throws -> [Part] {
    for part in parts { part.content = try content(of: .reference(part.table)) }
    return parts
  }

  /// The table that takes the place of a copy; any other value is itself.
  private func present(_ value: LuaValue) -> LuaValue {
    guard case .reference(let reference) = value, reference.kind == .table,
      let table = filled[vm.identity(of: reference)]
    else { return value }
    return .reference(table)
  }

  /// The content of a table in a form that can be compared; nil if it has none.
  private mutating func content(of table: LuaValue) throws -> [UInt8]? {
    guard room > 0 else { return nil }
    var copier = PlainCopier(vm: vm)
    guard let copy = try copier.copy(table) else { return nil }
    let content = PlainValueCodec.encode(copy, sortsEntries: true)
    room -= content.count
    return content
  }
}
