internal import FlowEngine

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
  func next(_ size: Int) throws(SystemError) -> ByteString {
    if let bytes {
      let part = bytes.bytes[offset..<min(offset + size, bytes.count)]
      offset += part.count
      return ByteString(part)
    }
    var part: [UInt8] = []
    while part.count < size {
      let read = try reader.read(size - part.count, Cancellation())
      if read.isEmpty { break }
      if part.isEmpty { part = read.bytes } else { part += read.bytes }
    }
    return ByteString(part)
  }
}

/// The place for an object that comes, part by part. Blocks; for helper threads.
// One thread uses it at a time.
final class ObjectSink: @unchecked Sendable {
  /// The content, if it isn't for a file.
  private(set) var bytes: [UInt8] = []
  private let file: FileReplacement?
  private let digest: FileHash.Digest
  private var size = 0

  /// Makes a place in memory, or for a file beside `path`, which it replaces at the end.
  init(path: ByteString?) throws(SystemError) {
    digest = try FileHash.Digest(.sha256)
    file = if let path { try FileReplacement(of: path) } else { nil }
  }

  func add(_ parts: [ByteString]) throws(SystemError) {
    for part in parts {
      try digest.add(part.bytes)
      size += part.count
      try file?.append(part)
      if file == nil { bytes += part.bytes }
    }
  }

  /// Checks the content; a file gets its name.
  func end(_ info: ObjectInfo) throws(SystemError) {
    let digest = ObjectStore.digest(ofHash: try digest.end())
    guard size == info.size else {
      throw SystemError(
        "object '\(info.name)' has \(size) bytes, but its description says \(info.size)")
    }
    guard digest.withoutPadding == info.digest.withoutPadding else {
      throw SystemError(
        "object '\(info.name)' is damaged: its digest is \(digest), but its description says \(info.digest)"
      )
    }
    try file?.commit()
  }
}

extension ByteString {
  /// The text without `=` at its end: some clients leave it out.
  var withoutPadding: ByteString {
    let last = bytes.lastIndex { $0 != UInt8(ascii: "=") } ?? -1
    return ByteString(bytes[...last])
  }
}
