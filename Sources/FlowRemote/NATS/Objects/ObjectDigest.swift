internal import FlowSystem
internal import FlowEngine

/// The SHA-256 of an object, which is computed while its parts come.
// One thread uses it at a time: each piece of work on a helper thread begins after the one before.
final class ObjectDigest: @unchecked Sendable {
  private var raw: OpaquePointer?

  /// - Throws: A `FlowError` when there is no OpenSSL.
  init() throws(FlowError) {
    if let problem = flowsystem_load_crypto() {
      throw FlowError(.error, "can't hash an object: \(ByteString(cText: problem))")
    }
    raw = flowsystem_digest_begin(FLOWSYSTEM_SHA256)
    if raw == nil { throw Self.failure }
  }

  deinit {
    if let raw { _ = flowsystem_digest_end(raw, nil, nil) }
  }

  private static let failure = FlowError(.error, "can't hash an object: libcrypto refuses it")

  func add(_ bytes: ByteString) throws(FlowError) {
    if bytes.isEmpty { return }
    let isAdded = bytes.withUnsafeBytes { bytes in
      raw.map { flowsystem_digest_add($0, bytes.baseAddress, bytes.count) } ?? false
    }
    if !isAdded { throw Self.failure }
  }

  /// The digest in the form of descriptions. Only the first call gets one.
  func end() throws(FlowError) -> ByteString {
    guard let raw else { throw Self.failure }
    self.raw = nil
    var digest = [UInt8](repeating: 0, count: Int(FLOWSYSTEM_DIGEST_SIZE))
    var count: UInt32 = 0
    let isDone = digest.withUnsafeMutableBufferPointer {
      flowsystem_digest_end(raw, $0.baseAddress, &count)
    }
    guard isDone, count == 32 else { throw Self.failure }
    return "SHA-256=\(NATSBase64.encodeForURL(Array(digest[..<32])))"
  }
}

/// The content of an object that is sent, part by part. Blocks; for helper threads.
// One thread uses it at a time.
final class ObjectSource: @unchecked Sendable {
  private let bytes: ByteString?
  private var offset = 0
  private let path: ByteString
  private let reader: FileReader

  init(bytes: ByteString) {
    self.bytes = bytes
    path = ""
    reader = FileReader("")
  }

  init(path: ByteString) {
    bytes = nil
    self.path = path
    reader = FileReader(path)
  }

  /// The next part, which is full unless it is the last; empty at the end.
  func next(_ size: Int) throws(FlowError) -> ByteString {
    if let bytes {
      let part = bytes.bytes[offset..<min(offset + size, bytes.count)]
      offset += part.count
      return ByteString(part)
    }
    var part: [UInt8] = []
    while part.count < size {
      let read: ByteString
      do throws(SystemError) {
        read = try reader.read(size - part.count, Cancellation())
      } catch {
        throw .from(error)
      }
      if read.isEmpty { break }
      if part.isEmpty { part = read.bytes } else { part += read.bytes }
    }
    return ByteString(part)
  }

  /// A source with the same content, from its start.
  func restarted() -> ObjectSource {
    bytes.map { ObjectSource(bytes: $0) } ?? ObjectSource(path: path)
  }

  /// The digest of all that is left.
  func digest(_ size: Int) throws(FlowError) -> ByteString {
    let digest = try ObjectDigest()
    while true {
      let part = try next(size)
      if part.isEmpty { return try digest.end() }
      try digest.add(part)
    }
  }
}

/// The place for an object that comes, part by part. Blocks; for helper threads.
// One thread uses it at a time.
final class ObjectSink: @unchecked Sendable {
  /// The content, if it isn't for a file.
  private(set) var bytes: [UInt8] = []
  private let file: FileReplacement?
  private let digest: ObjectDigest
  private var size = 0

  /// Makes a place in memory, or for a file beside `path`, which it replaces at the end.
  init(path: ByteString?) throws(FlowError) {
    digest = try ObjectDigest()
    do throws(SystemError) {
      file = if let path { try FileReplacement(of: path) } else { nil }
    } catch {
      throw .from(error)
    }
  }

  func add(_ parts: [ByteString]) throws(FlowError) {
    for part in parts {
      try digest.add(part)
      size += part.count
      do throws(SystemError) { try file?.append(part) } catch { throw .from(error) }
      if file == nil { bytes += part.bytes }
    }
  }

  /// Checks the content; a file gets its name.
  func end(_ info: ObjectInfo) throws(FlowError) {
    let digest = try digest.end()
    guard size == info.size else {
      throw FlowError(
        .error, "object '\(info.name)' has \(size) bytes, but its description says \(info.size)")
    }
    guard digest.withoutPadding == info.digest.withoutPadding else {
      throw FlowError(
        .error,
        "object '\(info.name)' is damaged: its digest is \(digest), but its description says \(info.digest)"
      )
    }
    do throws(SystemError) { try file?.commit() } catch { throw .from(error) }
  }
}

extension ByteString {
  /// The text without `=` at its end: some clients leave it out.
  var withoutPadding: ByteString {
    let last = bytes.lastIndex { $0 != UInt8(ascii: "=") } ?? -1
    return ByteString(bytes[...last])
  }
}
