/// The engine's own table with keys that are strings or integers: made from Swift dictionaries.
package final class MapValue: EngineTable {
  /// The fields in the order in which they were added: the values under strings, which may have any bytes.
  package private(set) var fields: [(name: ByteString, value: FlowValue)] = []
  /// The values under integers, in the order in which they were added.
  package private(set) var numbered: [(number: Int64, value: FlowValue)] = []
  private var index: [ByteString: Int] = [:]
  private var places: [Int64: Int] = [:]
  /// Its form in JSON, if it is marked: an empty table that isn't may be written as `[]`.
  package let jsonMark: PlainValue.JSONMark?

  /// Makes a table of fields; a later one replaces an earlier one of the same name.
  package convenience init(_ fields: [(some FlowText, FlowValue)] = [] as [(ByteString, FlowValue)])
  {
    self.init(fields, jsonMark: nil)
  }

  /// Makes one that is marked for JSON.
  package init(
    _ fields: [(some FlowText, FlowValue)] = [] as [(ByteString, FlowValue)],
    jsonMark: PlainValue.JSONMark?
  ) {
    self.jsonMark = jsonMark
    for (name, value) in fields { set(name, value) }
  }

  /// Copies the fields of any table whose keys are strings; nil when there is another key, or a
  /// value that can't be copied. An empty list becomes an empty table.
  convenience init?(copying table: any OpaqueValue) {
    if let map = table as? MapValue {
      guard map.numbered.isEmpty else { return nil }
      self.init(map.fields.map { ($0.name, $0.value) }, jsonMark: map.jsonMark)
      return
    }
    guard let copy = table.plainCopy(), case .table(let root) = copy.root,
      copy.tables.indices.contains(root), copy.tables[root].list.isEmpty
    else { return nil }
    for entry in copy.tables[root].entries {
      guard case .bytes = entry.key else { return nil }
    }
    guard case .opaque(let opaque) = copy.flowValue else { return nil }
    self.init((opaque as? MapValue)?.fields.map { ($0.name, $0.value) } ?? [])
  }

  deinit {
    var nested = NestedTables()
    takeNested(into: &nested)
    nested.release()
  }

  /// The value of a field.
  package subscript(name: some FlowText) -> FlowValue? {
    index[name.byteString].map { fields[$0].value }
  }

  /// Sets a field; `.null` isn't kept.
  @_specialize(where Name == ByteString)
  package func set<Name: FlowText>(_ name: Name, _ value: FlowValue) {
    let name = name.byteString
    if let place = index[name] {
      fields[place].value = value
    } else if !value.isNull {
      index[name] = fields.count
      fields.append((name, value))
    }
  }

  /// The value under an integer.
  package subscript(number: Int64) -> FlowValue? { places[number].map { numbered[$0].value } }

  /// Sets the value under an integer; `.null` isn't kept.
  package func set(_ number: Int64, _ value: FlowValue) {
    if let place = places[number] {
      numbered[place].value = value
    } else if !value.isNull {
      places[number] = numbered.count
      numbered.append((number, value))
    }
  }

  /// The values under 1…n, up to the first integer without one.
  private var list: [FlowValue] {
    var list: [FlowValue] = []
    while let value = self[Int64(list.count + 1)], !value.isNull { list.append(value) }
    return list
  }

  /// Moves the nested tables of a table that is about to be released to `nested`.
  func takeNested(into nested: inout NestedTables) {
    for index in fields.indices {
      nested.add(fields[index].value)
      fields[index].value = .null
    }
    for index in numbered.indices {
      nested.add(numbered[index].value)
      numbered[index].value = .null
    }
  }

  func makeEmpty() -> any EngineTable { MapValue(jsonMark: jsonMark) }

  func fill(from other: any EngineTable, _ convert: (FlowValue) throws -> FlowValue) rethrows {
    guard let other = other as? MapValue else { return }
    for field in other.fields { set(field.name, try convert(field.value)) }
    for element in other.numbered { set(element.number, try convert(element.value)) }
  }

  package var typeName: ByteString { "table" }

  package func matches(typeName: ByteString) -> Bool { typeName == "table" }

  package func listCount() -> Int? {
    guard fields.isEmpty else { return nil }
    let count = numbered.count { !$0.value.isNull }
    return list.count == count ? count : nil
  }

  package func element(at index: Int) -> FlowValue { self[Int64(index + 1)] ?? .null }

  package func entries() -> [(key: FlowValue, value: FlowValue)]? {
    numbered.compactMap { $0.value.isNull ? nil : (.integer($0.number), $0.value) }
      + fields.compactMap { $0.value.isNull ? nil : (.bytes($0.name), $0.value) }
  }

  package func field(_ name: ByteString) -> FlowValue? {
    self[name].flatMap { $0.isNull ? nil : $0 }
  }

  package func logText(limit: Int) -> ByteString {
    guard limit > 0 else { return "" }
    var text: ByteString = "{"
    // Like a list: each level takes a character, and gives the next level no more than remains.
    var rest = limit - 1
    for (number, part) in shownParts.enumerated() {
      if rest <= 0 { break }
      let value: ByteString =
        switch part.value {
        case .opaque(let value): value.logText(limit: rest)
        case .bytes(let value): value.truncated(to: rest)
        default: part.value.logText
        }
      let key: ByteString = part.key.map { "\($0) = " } ?? ""
      let shown: ByteString = "\(number > 0 ? ", " : "")\(key)\(value)"
      text = text + shown
      rest -= shown.characterCount
    }
    return (text + "}").truncated(to: limit)
  }

  /// As scripts' tables are shown: the list, then the other integers and the names, in order.
  private var shownParts: [(key: ByteString?, value: FlowValue)] {
    let list = list
    let others = numbered.filter { $0.number < 1 || $0.number > list.count }
    return list.map { (nil, $0) }
      + others.sorted { $0.number < $1.number }.map { (ByteString(String($0.number)), $0.value) }
      + fields.sorted { $0.name < $1.name }.map { ($0.name, $0.value) }
  }

  package func plainCopy() -> PlainValue? {
    var tables = [PlainValue.Table(mark: jsonMark)]
    func atom(_ value: FlowValue) -> PlainValue.Atom? {
      guard let copy = value.plainCopy() else { return nil }
      let base = tables.count
      tables.append(contentsOf: copy.tables.map { $0.shifted(by: base) })
      return copy.root.shifted(by: base)
    }
    let list = list
    for value in list {
      guard let atom = atom(value) else { return nil }
      tables[0].list.append(atom)
    }
    for (key, value) in entries() ?? [] {
      var copied = PlainValue.Atom.null
      switch key {
      case .integer(let number):
        if number >= 1 && number <= list.count { continue }
        copied = .integer(number)
      case .bytes(let name): copied = .bytes(name)
      default: continue
      }
      guard let atom = atom(value) else { return nil }
      tables[0].entries.append(PlainValue.Entry(key: copied, value: atom))
    }
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
