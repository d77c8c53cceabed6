internal import FlowEngine

/// The lines of a response's header, kept as they have come: most programs ask for few of them, or none.
struct HTTPHeaderLines {
  private static let lineEnd = UInt8(ascii: "\n")

  private static let statusMark = Array("HTTP/".utf8)
  private static let usualVersion: ByteString = "1.1"

  /// The status line, then the others, with their ends.
  private var text: [UInt8] = []
  /// The number of bytes of the status line.
  private var start = 0

  init() {}

  /// The lines that follow a status line, such as `HTTP/1.1 200 OK`.
  init(statusLine: UnsafeRawBufferPointer) {
    append(statusLine)
    start = text.count
  }

  /// Whether a line is the first one of a response.
  static func isStatus(_ line: UnsafeRawBufferPointer) -> Bool { line.starts(with: statusMark) }

  /// Adds a line, with its end.
  mutating func append(_ line: UnsafeRawBufferPointer) {
    // Most headers have fewer bytes.
    if text.isEmpty { text.reserveCapacity(512) }
    text.append(contentsOf: line)
    if line.last != Self.lineEnd { text.append(Self.lineEnd) }
  }

  /// The status; 0 when it is no number.
  var status: Int { Int(clamping: statusWord(1).decimal ?? 0) }

  /// The version of the protocol.
  var version: ByteString {
    let version = statusWord(0).dropFirst(Self.statusMark.count)
    return version.elementsEqual(Self.usualVersion.bytes)
      ? Self.usualVersion : ByteString(Array(version))
  }

  /// The words after the status.
  var reason: ByteString {
    let words = statusWord(2, andRest: true)
    return words.isEmpty ? "" : ByteString(Array(words)).escapingControls.truncated(to: 80)
  }

  /// A word of the status line, or all from there on.
  private func statusWord(_ index: Int, andRest: Bool = false) -> ArraySlice<UInt8> {
    let space = UInt8(ascii: " ")
    var rest = text[..<start].trimmed
    for _ in 0..<index { rest = rest.drop { $0 != space }.drop { $0 == space } }
    return andRest ? rest : rest.prefix { $0 != space }
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

  /// The values of the lines with a name, which is in lower case, joined by commas, if they aren't all the same.
  func different(_ name: StaticString) -> ByteString? {
    var first: ArraySlice<UInt8>?
    var differ = false
    forEach { other, value in
      guard let other, Self.isName(other, name) else { return }
      if let first, !first.elementsEqual(value) { differ = true }
      first = first ?? value
    }
    guard differ else { return nil }
    let values = all.filter { $0.name.equals(name) }.map(\.value.bytes)
    return ByteString(Array(values.joined(separator: Array(", ".utf8)))).truncated(to: 80)
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
    var rest = text[start...]
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
