@_spi(Scripting) package import FlowEngine

/// The body of a response as it comes: while nobody takes it, the transfer pauses.
///
/// Confined to the thread of its loop. The transfer is stopped when the stream is released.
package final class HTTPStream {
  /// The next part of a body.
  package enum Part {
    /// Bytes.
    case bytes(ByteString)
    /// The body is complete.
    case end
    /// Receiving it failed.
    case failed(FlowError)
    /// Nothing has come yet: the observer is notified.
    case pending
  }

  /// The transfer pauses when this many bytes wait.
  static let highMark = 1 << 18

  /// The most bytes of what code collects of the body as a whole, such as one event.
  package let partLimit: Int
  private var bytes: [UInt8] = []
  private var end: Part?
  /// Notified once, when there is something after `pending`.
  private var observer: (any LoopJob)?
  /// The wait of a script for the next part.
  package weak var wait: AnyObject?
  /// Continues or stops the transfer; nil after its end.
  weak var task: HTTPBodyTask?

  init(partLimit: Int) {
    self.partLimit = partLimit
  }

  deinit {
    guard let task else { return }
    // In a turn of its own: Lua's collector may be running.
    task.loop.enqueue { task.cancel(reason: "nothing reads the body") }
  }

  /// Takes the part that has come.
  ///
  /// - Parameter observer: Run as a job when there is something after `pending`; it replaces an
  ///   earlier one.
  /// - Returns: The part.
  package func take(_ observer: (any LoopJob)? = nil) -> Part {
    if !bytes.isEmpty {
      let taken = ByteString(bytes)
      bytes = []
      task?.resume()
      return .bytes(taken)
    }
    if let end { return end }
    self.observer = observer
    return .pending
  }

  /// Forgets the observer.
  package func forgetObserver() { observer = nil }

  /// Stops the transfer: nothing more of the body is needed.
  package func close() {
    bytes = []
    if end == nil { end = .end }
    task?.cancel()
  }

  /// Whether there is no room for more bytes.
  var isFull: Bool { bytes.count >= Self.highMark }

  /// Called within a callback of the library: the observer is notified later.
  func append(_ more: UnsafeRawBufferPointer) { bytes.append(contentsOf: more) }

  /// The transfer has ended.
  func finish(_ error: FlowError?) {
    if end == nil { end = error.map { .failed($0) } ?? .end }
  }

  /// Notifies the observer if there is something for it.
  func notify(on loop: FlowEventLoop) {
    guard !bytes.isEmpty || end != nil, let observer else { return }
    self.observer = nil
    loop.enqueue(observer)
  }
}

/// The part of a streaming request that follows its header: it ends with the body, is stopped with what
/// started the request, and keeps the loop from being idle.
package final class HTTPBodyTask: ExternalTask<Void> {
  private var transfer: HTTPTransfer?
  private weak var stream: HTTPStream?

  init(_ stream: HTTPStream, _ transfer: HTTPTransfer, on loop: FlowEventLoop) {
    self.stream = stream
    self.transfer = transfer
    super.init(on: loop)
    stream.task = self
    // The error belongs to the code that reads the body.
    markObserved()
  }

  package override var kindName: String { "http body" }

  /// Continues a paused transfer.
  func resume() { transfer?.resume() }

  /// The transfer has ended.
  func finish(_ error: FlowError?) {
    transfer = nil
    let stream = stream
    stream?.finish(error)
    if let error { end(error: error) } else { end(with: ()) }
    stream?.notify(on: loop)
  }

  package override func stopWork(_ error: FlowError) { transfer?.stop(error) }
}
