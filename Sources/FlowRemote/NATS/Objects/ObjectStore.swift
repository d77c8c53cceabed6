package import FlowEngine
internal import FlowSystem

/// A bucket of objects, such as files, in the layout of the `nats` tool and of NATS' other clients: a stream with
/// the parts of the objects, and with a description for each one.
package final class ObjectStore {
  package let bucket: ByteString
  let jetStream: JetStream
  var connection: NATSConnection { jetStream.connection }
  /// The uploads that are open, by the ids of their parts.
  private var uploads: [ByteString: ObjectUpload] = [:]
  /// Called when nothing is being sent any more; set when nothing more may be.
  private var whenStopped: (() -> Void)?

  /// The size of a part.
  static let chunkSize = 1 << 17
  /// The most parts that are on their way: 4 MiB.
  static let window = 32

  /// - Parameters:
  ///   - jetStream: The streams of a connection.
  ///   - bucket: The name of the bucket: letters, digits, `-` and `_`.
  /// - Throws: A `FlowError` of kind `usage` for another name.
  package init(_ jetStream: JetStream, bucket: ByteString) throws(FlowError) {
    let isName = bucket.bytes.allSatisfy { $0.isLetter || $0.isDigit || "-_".bytes.contains($0) }
    guard isName, !bucket.isEmpty, bucket.count < 200 else {
      throw .usage(
        "'\(bucket)' can't be the name of a bucket: letters, digits, '-' and '_' are expected")
    }
    self.jetStream = jetStream
    self.bucket = bucket
  }

  var stream: ByteString { "OBJ_\(bucket)" }

  /// The subject of an object's parts.
  func chunkSubject(_ nuid: ByteString) -> ByteString { "$O.\(bucket).C.\(nuid)" }

  /// The subject of an object's description.
  func metaSubject(_ name: ByteString) -> ByteString {
    "$O.\(bucket).M.\(NATSBase64.encodeForURL(name.bytes))"
  }

  // MARK: The bucket

  /// Creates the bucket, which so many servers of a cluster keep. If there is one already, what its administrator may have
  /// chosen stays.
  package func ensureBucket(replicas: Int = 1) async throws(FlowError) {
    var settings = StreamSettings(stream, subjects: ["$O.\(bucket).C.>", "$O.\(bucket).M.>"])
    settings.replicas = replicas
    settings.refusesExcess = true
    settings.allowsRollup = true
    settings.allowsDirect = true
    try await jetStream.ensureStream(settings)
  }

  /// The description of an object; nil if there is none.
  package func info(_ name: ByteString) async throws(FlowError) -> ObjectInfo? {
    guard let message = try await jetStream.getLastMessage(stream, metaSubject(name)) else {
      return nil
    }
    guard let json = try? NATSJSON(reading: message.data), let info = ObjectInfo(json),
      info.name == name
    else { throw connection.failure("the description of object '\(name)' is damaged") }
    return info.isDeleted ? nil : info
  }

  // MARK: Sending

  /// Stores bytes as an object, unless there is one of the same content already.
  @discardableResult
  package func put(_ name: ByteString, _ bytes: ByteString) async throws(FlowError) -> ObjectInfo {
    let hash = try await connection.loop.onHelperThread {
      try FileHash.sha256.digest(of: bytes, Cancellation())
    }
    return try await put(name, ObjectSource(bytes: bytes), hash: hash).info
  }

  /// Stores the content of a file as an object of a new name.
  package func putFile(
    _ name: ByteString, _ path: ByteString
  ) async throws(FlowError) -> ObjectInfo {
    try await send(name, ObjectSource(path: path), replacing: nil)
  }

  /// Stores a file as an object, unless there is one of the same content already; then its content isn't read.
  ///
  /// - Parameters:
  ///   - name: The name of the object.
  ///   - path: The path of the file.
  ///   - hash: The SHA-256 of its content; another content is an error.
  /// - Throws: The error of the server, or the connection's.
  /// - Returns: The description, and whether the file was sent.
  package func putFile(
    _ name: ByteString, _ path: ByteString, hash: ByteString
  ) async throws(FlowError) -> (info: ObjectInfo, isSent: Bool) {
    try await put(name, ObjectSource(path: path), hash: hash)
  }

  private func put(
    _ name: ByteString, _ source: ObjectSource, hash: ByteString
  ) async throws(FlowError) -> (info: ObjectInfo, isSent: Bool) {
    guard !name.isEmpty, name.count <= 255 else {
      throw .usage("'\(name)' can't be the name of an object")
    }
    let digest = Self.digest(ofHash: hash)
    let earlier = try await info(name)
    if let earlier, earlier.digest.withoutPadding == digest.withoutPadding {
      return (earlier, false)
    }
    return (try await send(name, source, replacing: earlier, digest: digest), true)
  }

  /// Sends an object; one with another digest than `digest` is an error.
  private func send(
    _ name: ByteString, _ source: ObjectSource, replacing earlier: ObjectInfo?,
    digest: ByteString? = nil
  ) async throws(FlowError) -> ObjectInfo {
    if whenStopped != nil { throw Self.stop }
    let upload = try ObjectUpload(self, source)
    uploads[upload.nuid] = upload
    defer {
      uploads[upload.nuid] = nil
      if uploads.isEmpty { whenStopped?() }
    }
    let info: ObjectInfo
    do throws(FlowError) {
      let sent = try await upload.send()
      if let digest, sent.digest != digest {
        throw FlowError(.error, "the file was changed while it was sent")
      }
      info = ObjectInfo(
        name: name, nuid: upload.nuid, size: sent.size, chunks: sent.chunks,
        digest: sent.digest ?? "",
        modified: ObjectInfo.currentTime(), isDeleted: false)
      try await publish(info)
    } catch {
      // Its own parts without a description. The server may have been given more than it has stored: it is asked until
      // there are none.
      while let count = await purgeChunks(upload.nuid), count > 0 {}
      throw error
    }
    if let earlier { await purgeChunks(earlier.nuid) }
    return info
  }

  private static let stop = FlowError(.error, "the object wasn't sent: the connection is closed")

  /// Whether something is being sent.
  package var isSending: Bool { !uploads.isEmpty }

  /// Stops what is being sent and removes its parts; nothing more can be sent. `then` is called when they are gone.
  package func stopUploads(then: @escaping () -> Void) {
    whenStopped = then
    if uploads.isEmpty { return then() }
    for upload in Array(uploads.values) { upload.stop(Self.stop) }
  }

  /// Stores a description, which replaces the one before.
  private func publish(_ info: ObjectInfo) async throws(FlowError) {
    let text = info.json(bucket: bucket, chunkSize: Self.chunkSize).text
    try await jetStream.publish(
      metaSubject(info.name), text, headers: [NATSHeader("Nats-Rollup", "sub")])
  }

  /// Removes the parts of an object, and returns their number; that they stay is no error.
  @discardableResult
  private func purgeChunks(_ nuid: ByteString) async -> UInt64? {
    nuid.isEmpty ? nil : try? await jetStream.purge(stream, subject: chunkSubject(nuid))
  }

  /// Deletes an object without a wait for the server's reply: for one that was stored over this connection.
  package func discard(_ info: ObjectInfo) {
    connection.perform { [self] in try await publish(info.deleted) }
    connection.perform { [self] in await purgeChunks(info.nuid) }
  }

  /// Deletes an object; the result is whether there was one.
  @discardableResult
  package func delete(_ name: ByteString) async throws(FlowError) -> Bool {
    guard let info = try await info(name) else { return false }
    try await publish(info.deleted)
    await purgeChunks(info.nuid)
    return true
  }

  /// Deletes an object that nobody reads any more; that it stays is no error.
  package func remove(_ name: ByteString) {
    connection.perform { [self] in try await delete(name) }
  }

  // MARK: Receiving

  /// The content of an object; nil if there is none.
  package func get(_ name: ByteString) async throws(FlowError) -> ByteString? {
    try await receive(name, path: nil).map { ByteString($0.bytes) }
  }

  /// Writes an object to a file, which is replaced in one step; the result is whether there is such an object.
  ///
  /// - Parameters:
  ///   - name: The name of the object.
  ///   - path: The path of the file.
  ///   - digest: The digest of its content; another one is an error, and the file stays as it was.
  /// - Throws: The error of the server, or the connection's.
  /// - Returns: Whether there is such an object.
  package func getFile(
    _ name: ByteString, _ path: ByteString, digest: ByteString? = nil
  ) async throws(FlowError) -> Bool {
    try await receive(name, path: path, digest: digest) != nil
  }

  private func receive(
    _ name: ByteString, path: ByteString?, digest: ByteString? = nil
  ) async throws(FlowError) -> ObjectSink? {
    guard let info = try await info(name) else { return nil }
    if let digest, info.digest.withoutPadding != digest.withoutPadding {
      throw FlowError(
        .error,
        "object '\(name)' has another content: its digest is \(info.digest), not \(digest)")
    }
    return try await receive(info, path: path)
  }

  /// The digest in descriptions of objects with a SHA-256 in hexadecimal digits.
  package static func digest(ofHash hash: ByteString) -> ByteString {
    let digits = hash.bytes.compactMap(\.hexadecimalDigit)
    let bytes = stride(from: 0, to: digits.count - 1, by: 2).map {
      digits[$0] << 4 | digits[$0 + 1]
    }
    return "SHA-256=\(NATSBase64.encodeForURL(bytes))"
  }
}

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
