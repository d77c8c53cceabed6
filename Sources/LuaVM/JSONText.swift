internal import CFlowLua

/// JSON that a program writes itself, with the strings and numbers of `json.encode`. It needs no Lua state.
package struct JSONText {
  /// What has been written.
  package private(set) var bytes: [UInt8] = []

  /// An empty text.
  package init() {}

  /// Appends what is JSON already.
  package mutating func append(raw text: String) { bytes += text.utf8 }

  /// Appends another text.
  package mutating func append(_ other: JSONText) { bytes += other.bytes }

  /// Appends a string in quotes; U+FFFD replaces bytes that aren't UTF-8.
  package mutating func append(_ string: ByteString) {
    bytes.append(UInt8(ascii: "\""))
    string.bytes.withUnsafeBytes { text in
      guard var at = text.baseAddress?.assumingMemoryBound(to: CChar.self) else { return }
      let end = at + text.count
      while at < end {
        let room = end - at + Int(FLOWLUA_ESCAPED)
        let written = [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
          var isValid = true
          buffer.withMemoryRebound(to: CChar.self) { buffer in
            guard let to = buffer.baseAddress else { return }
            var from: UnsafePointer<CChar> = at
            count = flowlua_json_characters(to, room, &from, end, false, true, &isValid)
            at = from
          }
        }
        bytes += written
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }

  /// Appends an integer.
  package mutating func append(_ number: Int64) {
    append { flowlua_write_integer($0, number) }
  }

  /// Appends a number, without a fraction if it has none; JSON has neither infinities nor NaN, for which
  /// null stands.
  package mutating func append(_ number: Double) {
    guard number.isFinite else { return append(raw: "null") }
    if let whole = Int64(exactly: number) { return append(whole) }
    append { flowlua_write_float($0, number) }
  }

  /// Appends integers with commas between them.
  package mutating func append(_ numbers: some Collection<Int64>) {
    bytes.reserveCapacity(bytes.count + numbers.count * 4)
    var isFirst = true
    for number in numbers {
      if !isFirst { bytes.append(UInt8(ascii: ",")) }
      isFirst = false
      if (0..<10).contains(number) {
        bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number))
      } else {
        append(number)
      }
    }
  }

  private mutating func append(_ write: (UnsafeMutablePointer<CChar>) -> Int) {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 40) { buffer in
      guard let to = buffer.baseAddress else { return }
      let count = write(to)
      for index in 0..<count { bytes.append(UInt8(bitPattern: buffer[index])) }
    }
  }
}
