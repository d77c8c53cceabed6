internal import FlowSystem

/// Digests of files and bytes, by OpenSSL's libcrypto.
package enum FileHash: String, CaseIterable, Sendable {
  case sha256, sha512, sha1, md5

  /// How much is read between two checks for a cancellation: it fits in a processor's cache.
  private static let chunk = 1 << 17

  /// The digest of a file's content. Blocks.
  ///
  /// - Returns: The digest in lower-case hexadecimal digits.
  package func digest(
    ofFile path: ByteString, _ cancellation: Cancellation
  ) throws(SystemError) -> ByteString {
    try digest(of: InputFile(path, verb: "hash"), cancellation)
  }

  /// The digest of a file's content, and its stamp; nil for the stamp of a file that was changed meanwhile. Blocks.
  package func digestAndStamp(
    ofFile path: ByteString, _ cancellation: Cancellation
  ) throws(SystemError) -> (digest: ByteString, stamp: FileStamp?) {
    let file = try InputFile(path, verb: "hash")
    let stamp = FileStamp(file.status)
    let digest = try digest(of: file, cancellation)
    return (digest, file.currentStatus().map { FileStamp($0) } == stamp ? stamp : nil)
  }

  private func digest(
    of file: borrowing InputFile, _ cancellation: Cancellation
  ) throws(SystemError) -> ByteString {
    let digest = try Digest(self)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunk, alignment: 64)
    defer { buffer.deallocate() }
    while true {
      let count = try file.read(into: buffer, cancellation)
      if count == 0 { return try digest.end() }
      try digest.add(buffer[..<count])
    }
  }

  /// The digest of bytes; of many of them on another thread.
  package func digest(
    of bytes: ByteString, _ cancellation: Cancellation
  ) throws(SystemError) -> ByteString {
    let digest = try Digest(self)
    var rest = bytes.bytes[...]
    while !rest.isEmpty {
      try cancellation.check()
      let part = rest.prefix(Self.chunk)
      try digest.add(part)
      rest = rest.dropFirst(part.count)
    }
    return try digest.end()
  }

  private var algorithm: flowsystem_digest_algorithm {
    switch self {
    case .sha256: FLOWSYSTEM_SHA256
    case .sha512: FLOWSYSTEM_SHA512
    case .sha1: FLOWSYSTEM_SHA1
    case .md5: FLOWSYSTEM_MD5
    }
  }

  /// A digest that is being computed.
  // One thread uses it at a time.
  package final class Digest: @unchecked Sendable {
    /// nil once it has ended.
    private var raw: OpaquePointer?

    private static let failure = SystemError("libcrypto can't compute a digest")

    package init(_ algorithm: FileHash) throws(SystemError) {
      if let problem = flowsystem_load_crypto() {
        throw SystemError(
          "can't hash: \(ByteString(String(cString: problem)))", code: ELIBACC)
      }
      guard let raw = flowsystem_digest_begin(algorithm.algorithm) else { throw Self.failure }
      self.raw = raw
    }

    deinit {
      if let raw { _ = flowsystem_digest_end(raw, nil, nil) }
    }

    /// Adds bytes.
    package func add(_ bytes: some Collection<UInt8>) throws(SystemError) {
      if bytes.isEmpty { return }
      let isAdded = bytes.withContiguousStorageIfAvailable { bytes in
        raw.map { flowsystem_digest_add($0, bytes.baseAddress, bytes.count) }
      }
      if isAdded != true { throw Self.failure }
    }

    /// The digest in lower-case hexadecimal digits. Only the first call gets one.
    package func end() throws(SystemError) -> ByteString {
      guard let raw else { throw Self.failure }
      self.raw = nil
      let digits = "0123456789abcdef".bytes
      let text = withUnsafeTemporaryAllocation(
        of: UInt8.self, capacity: Int(FLOWSYSTEM_DIGEST_SIZE)
      ) { buffer -> ByteString? in
        var count: UInt32 = 0
        guard flowsystem_digest_end(raw, buffer.baseAddress, &count) else { return nil }
        return ByteString(
          buffer.prefix(Int(count)).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
      }
      guard let text else { throw Self.failure }
      return text
    }
  }
}
