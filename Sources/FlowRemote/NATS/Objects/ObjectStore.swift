package import FlowEngine

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
    let isName = bucket.bytes.allSatisfy { byte in
      let scalar = Character(Unicode.Scalar(byte))
      return byte < 0x80 && (scalar.isLetter || scalar.isNumber) || byte == 0x2D || byte == 0x5F
    }
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

  /// Creates the bucket. If there is one already, what its administrator may have chosen stays.
  ///
  /// - Parameters:
  ///   - storage: Where the objects are kept.
  ///   - maxAge: How long an object is kept; nil for ever.
  ///   - maxBytes: The most bytes of all objects; nil for no limit.
  ///   - replicas: How many servers of a cluster keep the objects.
  ///   - then: Called with the error, or nil.
  package func ensureBucket(
    storage: StreamSettings.Storage = .file, maxAge: Duration? = nil, maxBytes: Int64? = nil,
    replicas: Int = 1, then: @escaping (FlowError?) -> Void
  ) {
    var settings = StreamSettings(stream, subjects: ["$O.\(bucket).C.>", "$O.\(bucket).M.>"])
    settings.storage = storage
    settings.maxAge = maxAge
    settings.maxBytes = maxBytes
    settings.replicas = replicas
    settings.discard = .new
    settings.allowsRollup = true
    settings.allowsDirect = true
    jetStream.ensureStream(settings) { then($0.failure) }
  }

  /// The description of an object; nil if there is none.
  package func info(
    _ name: ByteString, then: @escaping (Result<ObjectInfo?, FlowError>) -> Void
  ) {
    findInfo(name) { result in
      then(result.map { info in info?.isDeleted == true ? nil : info })
    }
  }

  /// The description of an object, also of one that was deleted.
  private func findInfo(
    _ name: ByteString, then: @escaping (Result<ObjectInfo?, FlowError>) -> Void
  ) {
    jetStream.getLastMessage(stream, metaSubject(name)) { [self] result in
      then(
        result.flatMap { message in
          guard let message else { return .success(nil) }
          guard let json = try? NATSJSON(reading: message.data), let info = ObjectInfo(json),
            info.name == name
          else {
            return .failure(connection.failure("the description of object '\(name)' is damaged"))
          }
          return .success(info)
        })
    }
  }

  // MARK: Sending

  /// Stores bytes as an object, unless there is one of the same content already.
  package func put(
    _ name: ByteString, _ bytes: ByteString,
    then: @escaping (Result<ObjectInfo, FlowError>) -> Void
  ) {
    put(name, ObjectSource(bytes: bytes), then: then)
  }

  /// Stores the content of a file as an object, unless there is one of the same content already.
  package func putFile(
    _ name: ByteString, _ path: ByteString,
    then: @escaping (Result<ObjectInfo, FlowError>) -> Void
  ) {
    put(name, ObjectSource(path: path), then: then)
  }

  private func put(
    _ name: ByteString, _ source: ObjectSource,
    then: @escaping (Result<ObjectInfo, FlowError>) -> Void
  ) {
    guard !name.isEmpty, name.count <= 255 else {
      connection.loop.enqueue { then(.failure(.usage("'\(name)' can't be the name of an object"))) }
      return
    }
    info(name) { [self] result in
      let earlier: ObjectInfo?
      switch result {
      case .success(let info): earlier = info
      case .failure(let error): return then(.failure(error))
      }
      guard let earlier else { return send(name, source, nil, then: then) }
      digest(of: source) { [self] result in
        switch result {
        case .success(let digest) where digest == earlier.digest: then(.success(earlier))
        case .success: send(name, source.restarted(), earlier, then: then)
        case .failure(let error): then(.failure(error))
        }
      }
    }
  }

  private func digest(
    of source: ObjectSource, then: @escaping (Result<ByteString, FlowError>) -> Void
  ) {
    connection.loop.offload {
      Result { () throws(FlowError) in try source.digest(Self.chunkSize) }
    } then: {
      then($0)
    }
  }

  /// Sends an object; one with another digest than `digest` is an error.
  func send(
    _ name: ByteString, _ source: ObjectSource, _ earlier: ObjectInfo?, digest: ByteString? = nil,
    then: @escaping (Result<ObjectInfo, FlowError>) -> Void
  ) {
    let upload: ObjectUpload
    do throws(FlowError) {
      if whenStopped != nil { throw Self.stop }
      upload = try ObjectUpload(self, source)
    } catch {
      return then(.failure(error))
    }
    uploads[upload.nuid] = upload
    func end(_ result: Result<ObjectInfo, FlowError>) {
      uploads[upload.nuid] = nil
      if uploads.isEmpty { whenStopped?() }
      then(result)
    }
    upload.start { [self] result in
      switch result {
      case .success(let sent):
        if let digest, sent.digest != digest {
          return purgeUpload(upload) {
            end(.failure(FlowError(.error, "the file was changed while it was sent")))
          }
        }
        let info = ObjectInfo(
          name: name, nuid: upload.nuid, size: sent.size, chunks: sent.chunks, digest: sent.digest,
          modified: ObjectInfo.currentTime())
        publish(info) { [self] error in
          // Its own parts without a description, or those of what it replaces.
          if let error { return purgeUpload(upload) { end(.failure(error)) } }
          purgeChunks(earlier?.nuid) { end(.success(info)) }
        }
      case .failure(let error): purgeUpload(upload) { end(.failure(error)) }
      }
    }
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
  private func publish(_ info: ObjectInfo, then: @escaping (FlowError?) -> Void) {
    let text = info.json(bucket: bucket, chunkSize: Self.chunkSize).text
    jetStream.publish(
      metaSubject(info.name), text, headers: [NATSHeader("Nats-Rollup", "sub")]
    ) { then($0.failure) }
  }

  /// Removes the parts of an object; that they stay is no error.
  private func purgeChunks(_ nuid: ByteString?, then: @escaping () -> Void) {
    guard let nuid, !nuid.isEmpty else { return then() }
    jetStream.purge(stream, subject: chunkSubject(nuid)) { _ in then() }
  }

  /// Removes the parts of an upload that has failed. The server may have been given more than it has stored: it is asked
  /// until there are none.
  private func purgeUpload(_ upload: ObjectUpload, then: @escaping () -> Void) {
    jetStream.purge(stream, subject: chunkSubject(upload.nuid)) { [self] result in
      if case .success(1...) = result { return purgeUpload(upload, then: then) }
      then()
    }
  }

  /// Deletes an object without a wait for the server's reply: for one that was stored over this connection.
  package func discard(_ info: ObjectInfo) {
    let deleted = ObjectInfo(
      name: info.name, nuid: info.nuid, size: 0, chunks: 0, digest: "",
      modified: ObjectInfo.currentTime(), isDeleted: true)
    publish(deleted) { _ in }
    purgeChunks(info.nuid) {}
  }

  /// Deletes an object; the result is whether there was one.
  package func delete(
    _ name: ByteString, then: @escaping (Result<Bool, FlowError>) -> Void
  ) {
    info(name) { [self] result in
      switch result {
      case .failure(let error): then(.failure(error))
      case .success(nil): then(.success(false))
      case .success(let info?):
        let deleted = ObjectInfo(
          name: name, nuid: info.nuid, size: 0, chunks: 0, digest: "",
          modified: ObjectInfo.currentTime(), isDeleted: true)
        publish(deleted) { [self] error in
          if let error { return then(.failure(error)) }
          purgeChunks(info.nuid) { then(.success(true)) }
        }
      }
    }
  }

  // MARK: Receiving

  /// The content of an object; nil if there is none.
  package func get(
    _ name: ByteString, then: @escaping (Result<ByteString?, FlowError>) -> Void
  ) {
    receive(name, path: nil) { result in
      then(result.map { sink in sink.map { ByteString($0.bytes) } })
    }
  }

  /// Writes an object to a file, which is replaced in one step; the result is whether there is such an object.
  package func getFile(
    _ name: ByteString, _ path: ByteString,
    then: @escaping (Result<Bool, FlowError>) -> Void
  ) {
    receive(name, path: path) { result in then(result.map { $0 != nil }) }
  }

  /// Receives an object; one with another digest than `digest` is an error.
  func receive(
    _ name: ByteString, path: ByteString?, digest: ByteString? = nil,
    then: @escaping (Result<ObjectSink?, FlowError>) -> Void
  ) {
    info(name) { [self] result in
      switch result {
      case .failure(let error): then(.failure(error))
      case .success(nil): then(.success(nil))
      case .success(let info?):
        if let digest, info.digest.withoutPadding != digest.withoutPadding {
          let problem: ByteString =
            "object '\(name)' has another content: its digest is \(info.digest), not \(digest)"
          return then(.failure(FlowError(.error, problem)))
        }
        ObjectDownload(self, info).start(path: path) { result in then(result.map { $0 }) }
      }
    }
  }
}

extension Result where Failure == FlowError {
  /// The error; nil for a success.
  package var failure: FlowError? {
    if case .failure(let error) = self { error } else { nil }
  }
}

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
