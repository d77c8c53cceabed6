@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// A Lua value with identity (a table, a function, a userdata, a coroutine) as an engine value.
final class ScriptValue: KindedList, FormedValue {
  let reference: LuaReference

  init(_ reference: LuaReference) {
    self.reference = reference
  }

  var typeName: ByteString { reference.vm.typeName(of: .reference(reference)) }

  func logText(limit: Int) -> ByteString {
    // Texts are also made on other threads, as by a test that shows what it compares.
    guard reference.vm.isOnOwnThread,
      let text = try? reference.vm.render(.reference(reference), limit: limit)
    else {
      return ByteString(reference.kind.name)
    }
    return text
  }

  func matches(typeName wanted: ByteString) -> Bool {
    wanted == ByteString(reference.kind.name) || wanted == typeName
  }

  func listCount() -> Int? { reference.vm.listCount(reference) }

  func elementKinds() -> ValueKinds? {
    guard let present = reference.vm.list(reference)?.kinds else { return nil }
    var left = present
    var kinds = ValueKinds()
    for (kind, counterpart) in Self.kinds where left.remove(kind) != nil {
      kinds.insert(counterpart)
    }
    return left.isEmpty ? kinds : kinds.union(.opaque)
  }

  private static let kinds: [(LuaKinds, ValueKinds)] = [
    (.boolean, .boolean), (.integer, .integer), (.float, .number), (.string, .bytes),
    (.table, .table), (.function, .function),
  ]

  func element(at index: Int) -> FlowValue {
    guard let value = try? reference.vm.element(index + 1, of: reference) else { return .null }
    return FlowValue(value)
  }

  func elements(_ range: Range<Int>) -> ContiguousArray<FlowValue> {
    var elements: ContiguousArray<FlowValue> = []
    elements.reserveCapacity(range.count)
    let places = range.lowerBound + 1..<range.upperBound + 1
    // The state identifies secrets among them, so values are made of these afterwards.
    var others: [(place: Int, value: LuaValue)] = []
    try? reference.vm.forEachElement(places, of: reference) { value in
      switch value {
      case .integer(let integer): elements.append(.integer(integer))
      case .number(let number): elements.append(.number(number))
      case .reference:
        others.append((elements.count, value))
        elements.append(.null)
      default: elements.append(FlowValue(value))
      }
    }
    for (place, value) in others { elements[place] = FlowValue(value) }
    // Without memory for it the result is nil, as it is for `element(at:)`.
    while elements.count < range.count { elements.append(.null) }
    return elements
  }

  func entries() -> [(key: FlowValue, value: FlowValue)]? {
    guard reference.kind == .table else { return nil }
    return try? reference.vm.pairs(of: reference).map { (FlowValue($0), FlowValue($1)) }
  }

  func field(_ name: ByteString) -> FlowValue? {
    guard reference.kind == .table, let value = try? reference.vm.field(name, of: reference),
      !value.isNil
    else { return nil }
    return FlowValue(value)
  }

  func parts() -> [FlowValue] { (try? parts(within: reference.vm.memoryLimit ?? .max)) ?? [] }

  /// The values in a table at any depth, but for the tables.
  ///
  /// - Parameter room: The bytes that may be copied.
  /// - Returns: The values; none for anything but a table.
  /// - Throws: A `LuaError` when there is too little room, or the state is closed.
  func parts(within room: Int) throws -> [FlowValue] {
    let vm = reference.vm
    guard reference.kind == .table, vm.isOnOwnThread else { return [] }
    var room = room
    var parts: [FlowValue] = []
    var open = [reference]
    var seen: Set<UInt> = []
    while let table = open.popLast() {
      guard seen.insert(vm.identity(of: table)).inserted else { continue }
      for (_, value) in try vm.pairs(of: table, room: &room) {
        if case .reference(let inner) = value, inner.kind == .table {
          open.append(inner)
        } else {
          parts.append(FlowValue(value))
        }
      }
    }
    return parts
  }

  func isSame(as other: any OpaqueValue) -> Bool {
    guard let other = other as? ScriptValue else { return false }
    let vm = reference.vm
    return reference === other.reference
      || vm === other.reference.vm && vm.isOpen
        && vm.identity(of: reference) == vm.identity(of: other.reference)
  }

  var identity: UInt { reference.vm.identity(of: reference) }

  func plainCopy() -> PlainValue? {
    var copier = PlainCopier(vm: reference.vm)
    return (try? copier.copy(.reference(reference))) ?? nil
  }

  func compared() -> (copy: PlainValue?, form: CodeForm?) {
    var copier = PlainCopier(vm: reference.vm)
    let copy = (try? copier.copy(.reference(reference))) ?? nil
    guard copy != nil, copier.hasMetatables else { return (copy, nil) }
    let host = reference.vm.scheduler as? ScriptHost
    let form = try? host?.codeForm(of: reference)
    return (form == nil ? nil : copy, form)
  }

  func copyForRun(_ copies: ValueCopies) throws -> any OpaqueValue {
    guard reference.kind == .table else { return self }
    let vm = reference.vm
    let memo = try copies.record as? LuaReference ?? vm.makeTable()
    copies.record = memo
    return ScriptValue(try vm.copy(reference, memo: memo))
  }
}

extension ByteString {
  /// The text of a value in Swift.
  init(describing value: Any) {
    self.init(String(describing: value))
  }
}

extension FlowValue {
  /// A Lua value as an engine value.
  init(_ value: LuaValue) {
    switch value {
    case .nil: self = .null
    case .boolean(let flag): self = .boolean(flag)
    case .integer(let integer): self = .integer(integer)
    case .number(let number): self = .number(number)
    case .string(let string): self = .bytes(string)
    case .reference(let reference):
      if reference.vm.isJSONNull(reference) {
        self = .jsonNull
        return
      }
      self = .opaque(reference.host?.opaque(in: value) ?? ScriptValue(reference))
    }
  }
}

/// An object of a bound class that a script has stored, as an engine value: scripts of its state get the
/// same userdata again, Swift gets the object.
///
/// It holds the Swift object itself, so Swift can read it after the state was closed.
final class ScriptObject: OpaqueValue {
  let reference: LuaReference
  private let bound: LuaBoundObject

  init(_ reference: LuaReference, _ bound: LuaBoundObject) {
    self.reference = reference
    self.bound = bound
  }

  /// The name of the class in scripts.
  var typeName: ByteString { ByteString(bound.className) }

  func logText(limit: Int) -> ByteString {
    if let text = try? reference.vm.render(.reference(reference), limit: limit) { return text }
    return ByteString(describing: bound.object).truncated(to: limit)
  }

  func matches(typeName wanted: ByteString) -> Bool {
    wanted == typeName || wanted == "userdata" || ObjectValue.isNamed(wanted, bound.object)
  }

  func listCount() -> Int? { nil }

  func element(at index: Int) -> FlowValue { .null }

  func plainCopy() -> PlainValue? { nil }

  func swiftObject() -> Any? { bound.object }

  /// Whether both hold the same instance of a class, or are the same userdata of a structure.
  func isSame(as other: any OpaqueValue) -> Bool {
    if self === other || ObjectValue.isSame(bound.object, other.swiftObject()) { return true }
    guard let other = other as? ScriptObject else { return false }
    return bound.content === other.bound.content
  }

  var identity: UInt { ObjectValue.identity(of: bound.object, orOf: bound.content) }
}

/// Code of a script that something of the engine holds.
protocol LuaCode: AnyObject {
  /// The values that make up the code, for forms of code that contain the holder.
  var codeValues: [LuaValue] { get throws }
}
