/// A copy of a value, which can be moved anywhere: to another thread, a process, a disk. Tables keep their cycles and what
/// they share.
///
/// ```swift
/// let copy = try PlainValue(encoding: ["article": "tea"])
/// print(try copy.decoded(as: [String: String].self))
/// ```
// Tables are in one flat list and referred to by their index, so that no depth of nesting needs recursion.
public struct PlainValue: Sendable, Equatable {
  /// A value within the graph.
  package enum Atom: Sendable {
    /// No value.
    case null
    /// A boolean.
    case boolean(Bool)
    /// An integer.
    case integer(Int64)
    /// A float.
    case number(Double)
    /// A string of bytes.
    case bytes(ByteString)
    /// The null of JSON, which unlike `null` is a value: a list may contain it.
    case jsonNull
    /// An index into `tables`.
    case table(Int)
    /// A value that no line shows: `flow.secret` of the inner atom, which is neither null nor a
    /// secret.
    indirect case secret(Atom)
  }

  /// A key with its value, in a table.
  package struct Entry: Sendable, Equatable {
    /// The key.
    package var key: Atom
    /// The value.
    package var value: Atom

    /// Makes an entry from a key and its value.
    package init(key: Atom, value: Atom) {
      self.key = key
      self.value = value
    }
  }

  /// The form of a table in JSON where its content doesn't say it: an empty one may be `[]` or `{}`.
  package enum JSONMark: Sendable {
    /// `[]`
    case array
    /// `{}`
    case object
  }

  /// A table: the values of 1…n, and everything else as entries.
  package struct Table: Sendable, Equatable {
    /// The values of the keys 1…n.
    package var list: [Atom]
    /// Everything else.
    package var entries: [Entry]
    /// Its form in JSON, if it is marked.
    package var mark: JSONMark?

    /// Makes a table of copies.
    package init(list: [Atom] = [], entries: [Entry] = [], mark: JSONMark? = nil) {
      self.list = list
      self.entries = entries
      self.mark = mark
    }
  }

  /// The value itself.
  package var root: Atom
  /// The tables of the value.
  package var tables: [Table]

  /// Makes a value with its tables.
  package init(_ root: Atom, tables: [Table] = []) {
    self.root = root
    self.tables = tables
  }
}

extension PlainValue.Atom: Equatable {
  /// Floats are equal when their bits are, so that copies of NaN or -0.0 can be distinguished.
  package static func == (left: Self, right: Self) -> Bool {
    switch (left, right) {
    case (.null, .null), (.jsonNull, .jsonNull): true
    case (.boolean(let left), .boolean(let right)): left == right
    case (.integer(let left), .integer(let right)): left == right
    case (.number(let left), .number(let right)): left.bitPattern == right.bitPattern
    case (.bytes(let left), .bytes(let right)): left == right
    case (.table(let left), .table(let right)): left == right
    case (.secret(let left), .secret(let right)): left == right
    default: false
    }
  }

  /// Whether it comes before another atom in the order of keys: by their types, then by value.
  func precedes(_ other: Self) -> Bool {
    switch (self, other) {
    case (.integer(let left), .integer(let right)): left < right
    case (.number(let left), .number(let right)): left < right
    case (.bytes(let left), .bytes(let right)): left < right
    case (.boolean(let left), .boolean(let right)): !left && right
    default: rank < other.rank
    }
  }

  private var rank: Int {
    switch self {
    case .null, .jsonNull: 0
    case .boolean: 1
    case .integer: 2
    case .number: 3
    case .bytes: 4
    case .table, .secret: 5
    }
  }

  /// This atom in a list of tables with `base` others before its own.
  func shifted(by base: Int) -> Self {
    switch self {
    case .table(let index): .table(index &+ base)
    case .secret(let atom): .secret(atom.shifted(by: base))
    default: self
    }
  }
}

extension PlainValue.Table {
  func shifted(by base: Int) -> Self {
    Self(
      list: list.map { $0.shifted(by: base) },
      entries: entries.map {
        PlainValue.Entry(key: $0.key.shifted(by: base), value: $0.value.shifted(by: base))
      }, mark: mark)
  }
}

extension PlainValue {
  /// A copy of anything `Encodable`.
  ///
  /// - Throws: An `EncodingError` when a part has no form, or one that can't be copied, such as an object.
  public init(encoding content: some Encodable) throws {
    guard let copy = PlainValue(flowValue: try FlowValue(encoding: content)) else {
      throw EncodingError.invalidValue(
        content, .init(codingPath: [], debugDescription: "a part of it can't be copied"))
    }
    self = copy
  }

  /// This value as anything `Decodable`.
  public func decoded<Content: Decodable>(as type: Content.Type = Content.self) throws -> Content {
    try flowValue.decoded(as: type)
  }
}
