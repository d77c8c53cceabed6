package import FlowEngine
internal import FlowSystem

/// The description of an object, in the form that the `nats` tool and other clients read.
package struct ObjectInfo: Sendable, Equatable {
  package let name: ByteString
  /// The name of its parts.
  package let nuid: ByteString
  /// The number of bytes.
  package let size: Int
  /// The number of parts.
  package let chunks: Int
  /// `SHA-256=` and the digest in base64.
  package let digest: ByteString
  /// When it was stored, in the form of RFC 3339.
  package let modified: ByteString
  package let isDeleted: Bool
}

extension ObjectInfo {
  /// The description that the object is deleted.
  var deleted: ObjectInfo {
    ObjectInfo(
      name: name, nuid: nuid, size: 0, chunks: 0, digest: "", modified: Self.currentTime(),
      isDeleted: true)
  }

  /// Reads a description; nil for one of another form, or with numbers that can't be.
  init?(_ json: NATSJSON) {
    guard let name = json["name"]?.asBytes, let nuid = json["nuid"]?.asBytes,
      nuid.isNATSName || nuid.isEmpty
    else { return nil }
    let size = json["size"]?.asInteger ?? 0
    let chunks = json["chunks"]?.asInteger ?? 0
    guard size >= 0, chunks >= 0, let wholeSize = Int(exactly: size),
      let wholeChunks = Int(exactly: chunks)
    else { return nil }
    self.init(
      name: name, nuid: nuid, size: wholeSize, chunks: wholeChunks,
      digest: json["digest"]?.asBytes ?? "", modified: json["mtime"]?.asBytes ?? "",
      isDeleted: json["deleted"]?.asBool ?? false)
  }

  func json(bucket: ByteString, chunkSize: Int) -> NATSJSON {
    NATSJSON.members([
      ("name", .string(name)),
      ("options", .members([("max_chunk_size", .integer(chunkSize))])),
      ("bucket", .string(bucket)), ("nuid", .string(nuid)), ("size", .integer(size)),
      ("mtime", .string(modified)), ("chunks", .integer(chunks)), ("digest", .string(digest)),
      ("deleted", isDeleted ? .bool(true) : nil),
    ])
  }

  /// The time now, in the form of RFC 3339, in UTC.
  static func currentTime() -> ByteString {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    var parts = tm()
    gmtime_r(&now.tv_sec, &parts)
    var text = [UInt8](repeating: 0, count: 32)
    let length = text.withUnsafeMutableBytes { bytes in
      bytes.withMemoryRebound(to: CChar.self) {
        strftime($0.baseAddress, $0.count, "%Y-%m-%dT%H:%M:%S" as String, &parts)
      }
    }
    let nanoseconds = ByteString(String(1_000_000_000 + now.tv_nsec)).bytes.dropFirst()
    return "\(ByteString(text.prefix(length))).\(ByteString(nanoseconds))Z"
  }
}
