/// Values with names, in the order in which they were written, such as the methods of a type.
///
/// Written like a dictionary literal. Names aren't looked up, and the first dictionary of a type
/// costs a program as much as starting a Lua state.
// Inlinable: as generic code in another module this would cost more than a dictionary.
package struct LuaFields<Value>: ExpressibleByDictionaryLiteral {
  // Tuples without labels, as in the literal: with labels they would be another type of array, and each such
  // type takes time at the start of a program.

  /// The names and values; a later field replaces an earlier one of the same name.
  package var list: [(String, Value)]

  /// Fields in the order of a list.
  @inlinable
  package init(_ list: [(String, Value)]) {
    self.list = list
  }

  @inlinable
  package init(dictionaryLiteral fields: (String, Value)...) {
    list = fields
  }

  /// Whether there are no fields.
  @inlinable
  package var isEmpty: Bool { list.isEmpty }

  /// The names, in order.
  package var names: [String] { list.map(\.0) }

  /// The same names with other values.
  @inlinable
  package func mapValues<Other>(_ transform: (Value) -> Other) -> LuaFields<Other> {
    LuaFields<Other>(list.map { ($0.0, transform($0.1)) })
  }

  /// Both lists; of two fields with the same name the right one counts.
  @inlinable
  package static func + (left: Self, right: Self) -> Self { Self(left.list + right.list) }
}
