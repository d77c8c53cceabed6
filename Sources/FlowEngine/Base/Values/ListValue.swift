/// The engine's own list: groups collect it when there is no Lua.
package final class ListValue: EngineTable, KindedList {
  /// The values in order.
  package private(set) var elements: ContiguousArray<FlowValue>
  /// Its form in JSON, if it is marked: an empty list that isn't may be written as `{}`.
  package let jsonMark: PlainValue.JSONMark?

  /// Makes a list of values.
  package init(_ elements: ContiguousArray<FlowValue>, jsonMark: PlainValue.JSONMark? = nil) {
    self.elements = elements
    self.jsonMark = jsonMark
  }

  /// Makes a list from an array.
  package convenience init(_ elements: [FlowValue], jsonMark: PlainValue.JSONMark? = nil) {
    self.init(ContiguousArray(elements), jsonMark: jsonMark)
  }

  deinit {
    var nested = NestedTables()
    takeNested(into: &nested)
    nested.release()
  }

  /// Moves the nested tables of a list that is about to be released to `nested`.
  func takeNested(into nested: inout NestedTables) {
    for index in elements.indices {
      guard case .opaque = elements[index] else { continue }
      nested.add(elements[index])
      elements[index] = .null
    }
  }

  /// Adds a value at the end.
  package func append(_ value: FlowValue) {
    elements.append(value)
  }

  /// Replaces the element at an index that exists.
  func replace(at index: Int, with value: FlowValue) {
    elements[index] = value
  }

  func makeEmpty() -> any EngineTable { ListValue([FlowValue](), jsonMark: jsonMark) }

  func fill(from other: any EngineTable, _ convert: (FlowValue) throws -> FlowValue) rethrows {
    for element in (other as? ListValue)?.elements ?? [] { elements.append(try convert(element)) }
  }

  package var typeName: ByteString { "table" }

  package func matches(typeName: ByteString) -> Bool { typeName == "table" }

  package func listCount() -> Int? { elements.count }

  package func elementKinds() -> ValueKinds? {
    elements.reduce(into: ValueKinds()) { $0.formUnion($1.kind) }
  }

  package func element(at index: Int) -> FlowValue {
    elements.indices.contains(index) ? elements[index] : .null
  }

  package func elements(_ range: Range<Int>) -> ContiguousArray<FlowValue> {
    range == elements.indices
      ? elements : ContiguousArray(range.map { element(at: $0) })
  }

  package func entries() -> [(key: FlowValue, value: FlowValue)]? {
    elements.enumerated().map { (.integer(Int64($0 + 1)), $1) }
  }

  package func field(_ name: ByteString) -> FlowValue? { nil }

  package func logText(limit: Int) -> ByteString {
    var renderer = ValueRenderer(limit: limit)
    renderer.append(self)
    return renderer.text
  }

  package func plainCopy() -> PlainValue? {
    var tables: [PlainValue.Table] = []
    var indices: [ObjectIdentifier: Int] = [:]
    var lists: [ListValue] = []

    func index(of list: ListValue) -> Int {
      if let known = indices[ObjectIdentifier(list)] { return known }
      indices[ObjectIdentifier(list)] = tables.count
      tables.append(PlainValue.Table(mark: list.jsonMark))
      lists.append(list)
      return tables.count - 1
    }

    _ = index(of: self)
    var next = 0
    while next < lists.count {
      let list = lists[next]
      guard let slot = indices[ObjectIdentifier(list)] else { return nil }
      var atoms: [PlainValue.Atom] = []
      for element in list.elements {
        if case .opaque(let value) = element, let inner = value as? ListValue {
          atoms.append(.table(index(of: inner)))
        } else {
          guard let copy = element.plainCopy() else { return nil }
          let base = tables.count
          tables.append(contentsOf: copy.tables.map { $0.shifted(by: base) })
          atoms.append(copy.root.shifted(by: base))
        }
      }
      tables[slot].list = atoms
      next += 1
    }
    return PlainValue(.table(0), tables: tables)
  }
}

/// The null of JSON as a value: unlike `FlowValue.null`, a bucket keeps it, and a list may contain it.
///
/// It has no state, so it can be used on any thread. Scripts see it as `json.null`.
package final class JSONNull: OpaqueValue, Sendable {
  /// The only one.
  package static let shared = JSONNull()

  private init() {}

  package var typeName: ByteString { "light userdata" }

  package func logText(limit: Int) -> ByteString { ("null" as ByteString).truncated(to: limit) }

  package func matches(typeName: ByteString) -> Bool {
    typeName == "userdata" || typeName == self.typeName
  }

  package func listCount() -> Int? { nil }

  package func element(at index: Int) -> FlowValue { .null }

  package func plainCopy() -> PlainValue? { PlainValue(.jsonNull) }
}

extension FlowValue {
  /// The null of JSON, for a bucket or a list.
  public static var jsonNull: FlowValue { .opaque(JSONNull.shared) }

  /// Whether it is the null of JSON.
  package var isJSONNull: Bool {
    if case .opaque(let value) = self { value is JSONNull } else { false }
  }
}
