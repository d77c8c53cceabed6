internal import FlowEngine

/// The payloads of messages: their bytes, or the name of the object that has them if they are too large for a message.
final class RemotePayloads {
  private let objects: ObjectStore

  init(_ objects: ObjectStore) {
    self.objects = objects
  }

  /// What a message needs besides its payload.
  private static let overhead = 1024
  /// How the names of objects begin that belong to one message.
  private static let prefix: ByteString = "value-"

  /// Makes the payload of bytes, and stores the object for it if it needs one.
  func make(of bytes: [UInt8], _ then: @escaping (Result<ByteString, FlowError>) -> Void) {
    if bytes.count + Self.overhead <= objects.jetStream.connection.maxPayload {
      return then(.success(ByteString([0] + bytes)))
    }
    let name: ByteString
    do throws(SystemError) {
      name = "\(Self.prefix)\(try FileHash.sha256.digest(of: ByteString(bytes), Cancellation()))"
    } catch {
      return then(.failure(.from(error)))
    }
    objects.put(name, ByteString(bytes)) { result in
      then(result.map { _ in ByteString([1] + name.bytes) })
    }
  }

  /// The object that has the bytes of a payload; nil for one that has them itself.
  static func object(of payload: ByteString) -> ByteString? {
    guard payload.bytes.first == 1 else { return nil }
    let name = ByteString(Array(payload.bytes.dropFirst()))
    return name.bytes.starts(with: prefix.bytes) ? name : nil
  }

  /// Removes the object of a payload that nobody reads any more, and calls `then` when that is done, or failed.
  func release(_ payload: ByteString, then: @escaping () -> Void = {}) {
    guard let name = Self.object(of: payload) else { return then() }
    objects.delete(name) { _ in then() }
  }

  /// The bytes of a payload; nil for one of another program, or whose object is gone.
  func content(
    of payload: ByteString, _ then: @escaping (Result<[UInt8]?, FlowError>) -> Void
  ) {
    if payload.bytes.first == 0 { return then(.success(Array(payload.bytes.dropFirst()))) }
    guard let name = Self.object(of: payload) else { return then(.success(nil)) }
    objects.get(name) { result in then(result.map { $0?.bytes }) }
  }
}

extension NATSConnection {
  /// Connects to servers, for what has its objects in a bucket there.
  ///
  /// - Parameters:
  ///   - settings: The servers.
  ///   - bucket: The name of the bucket.
  ///   - loop: The loop on which all of it is used.
  ///   - then: Gets the streams and the bucket.
  static func connect(
    _ settings: NATSSettings, bucket: ByteString, on loop: EventLoop,
    then: @escaping (Result<(stream: JetStream, objects: ObjectStore), FlowError>) -> Void
  ) {
    connect(settings, on: loop) { result in
      then(
        result.flatMap { connection in
          let stream = JetStream(connection)
          do throws(FlowError) {
            return .success((stream, try ObjectStore(stream, bucket: bucket)))
          } catch {
            connection.close()
            return .failure(error)
          }
        })
    }
  }
}
