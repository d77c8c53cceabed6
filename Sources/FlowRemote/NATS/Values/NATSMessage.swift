package import FlowEngine

/// A line of a message's header.
package struct NATSHeader: Equatable, Sendable {
  package let name: ByteString
  package let value: ByteString

  package init(_ name: ByteString, _ value: ByteString) {
    self.name = name
    self.value = value
  }
}

/// A message that has come from a server.
package struct NATSMessage: Sendable {
  package let subject: ByteString
  /// The subject for replies; nil if none is expected.
  package let reply: ByteString?
  package let data: ByteString
  /// In no particular order.
  package let headers: [NATSHeader]

  /// The first value of a header; the case of its name counts.
  package func header(_ name: StaticString) -> ByteString? {
    headers.first { $0.name.equals(name) }?.value
  }

  /// The code of a message from the server itself, such as 503; nil for any other message.
  package var status: Int? {
    if headers.isEmpty { return nil }
    return header("Status").flatMap { Int($0.description) }
  }

  /// The server's text for its code.
  package var statusText: ByteString { header("Description") ?? "" }
}

extension NATSHeader {
  /// Reads the lines of a header as the server stores it: a version, then a line for each entry.
  static func list(ofBlock bytes: [UInt8]) -> [NATSHeader] {
    bytes.split(separator: 0x0A).dropFirst().compactMap { line in
      let line = line.last == 0x0D ? line.dropLast() : line
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
      let value = line[(colon + 1)...].drop { $0 == 0x20 }
      return NATSHeader(ByteString(Array(line[..<colon])), ByteString(Array(value)))
    }
  }

  /// Whether the name and value can be sent.
  var isValid: Bool {
    let isNamed =
      !name.isEmpty && name.bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }
    return isNamed && value.bytes.allSatisfy { $0 != 0 && $0 != 0x0A && $0 != 0x0D }
  }
}
