internal import FlowSystem

/// A failed system call, as a sentence.
public struct SystemError: Error, Sendable, CustomStringConvertible {
  /// The call that failed, and the reason.
  public let message: ByteString
  /// The system's `errno`; nil when there is none. `ECANCELED` means that the work was cancelled.
  public let code: Int32?

  /// Makes the error of a failed call.
  ///
  /// - Parameters:
  ///   - message: The call that failed, and the reason.
  ///   - code: The system's `errno`, if there is one.
  public init(_ message: some FlowText, code: Int32? = nil) {
    self.message = message.byteString
    self.code = code
  }

  /// Makes the error of a failed call with only the system's own message.
  package init(code: Int32) {
    self.init(systemMessage(code), code: code)
  }

  /// Whether the work was cancelled.
  package var isCancellation: Bool { code == ECANCELED }

  /// Whether there was no memory, or a limit of it was exceeded.
  package var isLackOfMemory: Bool { code == ENOMEM }

  public var description: String { message.description }
}

/// The system's text for an `errno`.
package func systemMessage(_ number: Int32) -> ByteString {
  strerror(number).map { ByteString(cString: $0) } ?? "error \(number)"
}

extension ByteString {
  /// The text with `\0` for each NUL byte.
  package var escapingNUL: ByteString {
    let parts = bytes.split(separator: 0, omittingEmptySubsequences: false)
    return parts.joined(separator: "\\0")
  }

  /// Lends the bytes as a C string; nil when there is a NUL in them, which would end it early.
  package func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result? {
    bytes.withUnsafeBytes { bytes in
      if let start = bytes.baseAddress, memchr(start, 0, bytes.count) != nil { return nil }
      return withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes.count + 1) { buffer in
        guard let copy = buffer.baseAddress else { misuse("no memory for \(bytes.count) bytes") }
        if let start = bytes.baseAddress { memcpy(copy, start, bytes.count) }
        copy[bytes.count] = 0
        return body(copy)
      }
    }
  }
}
