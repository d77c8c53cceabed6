internal import FlowEngine

/// The lines of a header, kept as they have come: most programs ask for few of them, or none.
struct HTTPHeaderLines {
  private static let lineEnd = UInt8(ascii: "\n")

  /// The lines with their ends.
  private var text: [UInt8] = []

  /// Adds a line, with its end.
  mutating func append(_ line: UnsafeRawBufferPointer) {
    // Most headers have fewer bytes.
    if text.isEmpty { text.reserveCapacity(512) }
    text.append(contentsOf: line)
    if line.last != Self.lineEnd { text.append(Self.lineEnd) }
  }

  /// The names, in lower case, and the values in order.
  var all: [(name: ByteString, value: ByteString)] {
    var all: [(name: ByteString, value: ByteString)] = []
    forEach { name, value in
      if let name {
        all.append((ByteString(Array(name)).lowercased, ByteString(Array(value))))
      } else if let last = all.popLast() {
        all.append((last.name, last.value + " " + ByteString(Array(value))))
      }
    }
    return all
  }

  /// The value of the last line with a name, which is in lower case.
  func last(_ name: StaticString) -> ByteString? {
    var found: ByteString?
    var isOfName = false
    forEach { other, value in
      if let other {
        isOfName = Self.isName(other, name)
        if isOfName { found = ByteString(Array(value)) }
      } else if isOfName, let start = found {
        found = start + " " + ByteString(Array(value))
      }
    }
    return found
  }

  private static func isName(_ name: ArraySlice<UInt8>, _ wanted: StaticString) -> Bool {
    guard name.count == wanted.utf8CodeUnitCount else { return false }
    return wanted.withUTF8Buffer { wanted in
      zip(name, wanted).allSatisfy { $0.asciiLowercased == $1 }
    }
  }

  /// Calls `body` with each line. A line without a name continues the value of the one before: an old
  /// form, which some servers still send.
  private func forEach(_ body: (_ name: ArraySlice<UInt8>?, _ value: ArraySlice<UInt8>) -> Void) {
    var rest = text[...]
    while let end = rest.firstIndex(of: Self.lineEnd) {
      let line = rest[..<end]
      rest = rest[(end + 1)...]
      if line.first == UInt8(ascii: " ") || line.first == UInt8(ascii: "\t") {
        let value = line.trimmed
        if !value.isEmpty { body(nil, value) }
      } else if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
        body(line[..<colon].trimmed, line[(colon + 1)...].trimmed)
      }
    }
  }
}
