/// Values with names, in the order in which they were written, such as the methods of a type.
///
/// Written like a dictionary literal. Names aren't looked up, and the first dictionary of a type
/// costs a program as much as starting a Lua state.
// Inlinable: as generic code in another module this would cost more than a dictionary.
public struct LuaFields<Value>: ExpressibleByDictionaryLiteral {
  /// The fields; a later one replaces an earlier one of the same name.
  public var list: [(name: String, value: Value)]

  /// Fields in the order of a list.
  @inlinable
  public init(_ list: [(name: String, value: Value)]) {
    self.list = list
  }

  @inlinable
  public init(dictionaryLiteral fields: (String, Value)...) {
    list = fields.map { (name: $0.0, value: $0.1) }
  }

  /// Whether there are no fields.
  @inlinable
  public var isEmpty: Bool { list.isEmpty }

  /// The names, in order.
  public var names: [String] { list.map(\.name) }

  /// The same names with other values.
  @inlinable
  public func mapValues<Other>(_ transform: (Value) -> Other) -> LuaFields<Other> {
    LuaFields<Other>(list.map { (name: $0.name, value: transform($0.value)) })
  }

  /// Both lists; of two fields with the same name the right one counts.
  @inlinable
  public static func + (left: Self, right: Self) -> Self { Self(left.list + right.list) }
}
