/// The engine's own table with string keys: made from Swift dictionaries.
public final class MapValue: EngineTable {
  /// The fields in the order in which they were added.
  public private(set) var fields: [(name: ByteString, value: FlowValue)] = []
  private var index: [ByteString: Int] = [:]
  /// What it is in JSON, if it is marked: an empty table that isn't may be written as `[]`.
  package let jsonMark: PlainValue.JSONMark?

  /// Makes a table of fields; a later one replaces an earlier one of the same name.
  public init(_ fields: [(ByteString, FlowValue)], jsonMark: PlainValue.JSONMark? = nil) {
    self.jsonMark = jsonMark
    for (name, value) in fields { set(name, value) }
  }

  /// Copies the fields of any table whose keys are strings; nil when there is another key, or a
  /// value that can't be copied. An empty list becomes an empty table.
  convenience init?(copying table: any OpaqueValue) {
    if let map = table as? MapValue {
      self.init(map.fields, jsonMark: map.jsonMark)
      return
    }
    guard let copy = table.plainCopy(), case .table(let root) = copy.root,
      copy.tables.indices.contains(root), copy.tables[root].list.isEmpty
    else { return nil }
    for entry in copy.tables[root].entries {
      guard case .bytes = entry.key else { return nil }
    }
    guard case .opaque(let opaque) = copy.flowValue else { return nil }
    self.init((opaque as? MapValue)?.fields ?? [])
  }

  deinit {
    var nested = NestedTables()
    takeNested(into: &nested)
    nested.release()
  }

  /// The value of a field.
  public subscript(name: ByteString) -> FlowValue? { index[name].map { fields[$0].value } }

  /// Sets a field; `.null` isn't kept.
  public func set(_ name: ByteString, _ value: FlowValue) {
    if let place = index[name] {
      fields[place].value = value
    } else if !value.isNull {
      index[name] = fields.count
      fields.append((name, value))
    }
  }

  /// Moves the nested tables of a table that is about to be released to `nested`.
  func takeNested(into nested: inout NestedTables) {
    for index in fields.indices {
      nested.add(fields[index].value)
      fields[index].value = .null
    }
  }

  func makeEmpty() -> any EngineTable { MapValue([], jsonMark: jsonMark) }

  func fill(from other: any EngineTable, _ convert: (FlowValue) throws -> FlowValue) rethrows {
    for field in (other as? MapValue)?.fields ?? [] { set(field.name, try convert(field.value)) }
  }

  public var typeName: ByteString { "table" }

  public func matches(typeName: ByteString) -> Bool { typeName == "table" }

  public func listCount() -> Int? { fields.isEmpty ? 0 : nil }

  public func element(at index: Int) -> FlowValue { .null }

  public func entries() -> [(key: FlowValue, value: FlowValue)]? {
    fields.compactMap { $0.value.isNull ? nil : (.bytes($0.name), $0.value) }
  }

  public func field(_ name: ByteString) -> FlowValue? {
    self[name].flatMap { $0.isNull ? nil : $0 }
  }

  public func logText(limit: Int) -> ByteString {
    guard limit > 0 else { return "" }
    var text: ByteString = "{"
    // As in a list: each level takes a character, and gives the next level no more than remains.
    var rest = limit - 1
    for (number, field) in fields.sorted(by: { $0.name < $1.name }).enumerated() {
      if rest <= 0 { break }
      let value: ByteString =
        switch field.value {
        case .opaque(let value): value.logText(limit: rest)
        case .bytes(let value): value.truncated(to: rest)
        default: field.value.logText
        }
      let shown = "\(number > 0 ? ", " : "")\(field.name) = \(value)" as ByteString
      text = text + shown
      rest -= shown.characterCount
    }
    return (text + "}").truncated(to: limit)
  }

  public func plainCopy() -> PlainValue? {
    var tables = [PlainValue.Table(mark: jsonMark)]
    var entries: [PlainValue.Entry] = []
    for field in fields {
      guard let copy = field.value.plainCopy() else { return nil }
      let base = tables.count
      tables.append(contentsOf: copy.tables.map { $0.shifted(by: base) })
      entries.append(
        PlainValue.Entry(key: .bytes(field.name), value: copy.root.shifted(by: base)))
    }
    tables[0].entries = entries
    return PlainValue(.table(0), tables: tables)
  }
}

/// Tables of the engine's own that were taken out of others, which are about to be released.
///
/// A loop releases them. Their own deinitializers would recurse as deep as they are nested.
struct NestedTables {
  private var lists: [ListValue] = []
  private var maps: [MapValue] = []

  var isEmpty: Bool { lists.isEmpty && maps.isEmpty }

  mutating func add(_ value: FlowValue) {
    guard case .opaque(let object) = value else { return }
    if let list = object as? ListValue {
      lists.append(list)
    } else if let map = object as? MapValue {
      maps.append(map)
    }
  }

  /// Takes the nested tables out of those that nothing else holds, and releases these.
  mutating func release() {
    while !isEmpty {
      while var list = lists.popLast() {
        if isKnownUniquelyReferenced(&list) { list.takeNested(into: &self) }
      }
      while var map = maps.popLast() {
        if isKnownUniquelyReferenced(&map) { map.takeNested(into: &self) }
      }
    }
  }
}
