package import FlowEngine

// Files whose SHA-256 is known.
extension ObjectStore {
  /// The digest in descriptions of objects with a SHA-256 in hexadecimal digits.
  package static func digest(ofHash hash: ByteString) -> ByteString {
    func value(_ digit: UInt8) -> UInt8 {
      digit <= UInt8(ascii: "9") ? digit &- UInt8(ascii: "0") : digit &- UInt8(ascii: "a") &+ 10
    }
    let digits = hash.bytes
    let bytes = stride(from: 0, to: digits.count - 1, by: 2).map {
      value(digits[$0]) << 4 | value(digits[$0 + 1])
    }
    return "SHA-256=\(NATSBase64.encodeForURL(bytes))"
  }

  /// Stores a file as an object, unless there is one of the same content already; then its content isn't read.
  ///
  /// - Parameters:
  ///   - name: The name of the object.
  ///   - path: The path of the file.
  ///   - hash: The SHA-256 of its content; another content is an error.
  ///   - then: Gets the description, and whether the file was sent.
  package func putFile(
    _ name: ByteString, _ path: ByteString, hash: ByteString,
    then: @escaping (Result<(info: ObjectInfo, isSent: Bool), FlowError>) -> Void
  ) {
    let digest = Self.digest(ofHash: hash)
    info(name) { [self] result in
      switch result {
      case .failure(let error): then(.failure(error))
      case .success(let earlier?) where earlier.digest.withoutPadding == digest.withoutPadding:
        then(.success((earlier, false)))
      case .success(let earlier):
        send(name, ObjectSource(path: path), earlier, digest: digest) { result in
          then(result.map { ($0, true) })
        }
      }
    }
  }

  /// Writes an object to a file, which is replaced in one step; the result is whether there is such an object.
  ///
  /// - Parameters:
  ///   - name: The name of the object.
  ///   - path: The path of the file.
  ///   - digest: The digest of its content; another one is an error, and the file stays as it was.
  ///   - then: Gets the result.
  package func getFile(
    _ name: ByteString, _ path: ByteString, digest: ByteString,
    then: @escaping (Result<Bool, FlowError>) -> Void
  ) {
    receive(name, path: path, digest: digest) { result in then(result.map { $0 != nil }) }
  }
}
