internal import FlowEngine

extension ObjectStore {
  /// After how long without a part a download fails, and how often it looks whether the object is still there, while no
  /// parts come.
  private static let patience = Duration.seconds(60)
  private static let interval = Duration.seconds(2)

  /// Receives the parts of an object, a few at a time, and writes them on helper threads, in memory or for a file.
  func receive(_ info: ObjectInfo, path: ByteString?) async throws(FlowError) -> ObjectSink {
    let loop = connection.loop
    // No part may come for a while, during which the loop isn't idle.
    let external = loop.mailbox.begin()
    let reading = StreamReading(
      jetStream, stream, chunkSubject(info.nuid), .all, window: Self.window)
    defer {
      reading.end()
      external.endOnLoop()
    }
    let sink = try await loop.onHelperThread { try ObjectSink(path: path) }
    var (count, size, silence) = (0, 0, Duration.zero)
    repeat {
      let parts =
        count < info.chunks ? try await reading.next(within: Self.interval).map(\.data) : []
      silence = parts.isEmpty ? silence + Self.interval : .zero
      count += parts.count
      size += parts.reduce(0) { $0 + $1.count }
      // More than described would fill the memory or the disk.
      guard size <= info.size, count <= info.chunks else {
        throw connection.failure("object '\(info.name)' has more than its description says")
      }
      let isEnd = count == info.chunks
      if parts.isEmpty, !isEnd {
        if silence >= Self.patience {
          throw connection.failure("no part of object '\(info.name)' comes")
        }
        try await checkPresence(of: info)
      }
      try await loop.onHelperThread {
        try sink.add(parts)
        if isEnd { try sink.end(info) }
      }
    } while count < info.chunks
    return sink
  }

  /// Fails if somebody has deleted or replaced an object meanwhile.
  private func checkPresence(of object: ObjectInfo) async throws(FlowError) {
    let now: ObjectInfo?
    do throws(FlowError) { now = try await info(object.name) } catch { return }
    if now?.nuid != object.nuid {
      throw connection.failure("object '\(object.name)' was deleted while it was received")
    }
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
