@_spi(Scripting) public import FlowEngine
internal import FlowSystem

/// A request as a task. It succeeds with the response; of a request that streams, as soon as the
/// header is there.
package final class HTTPTask: ExternalTask<FlowHTTPResponse> {
  /// Identifies the part of the program that has started the request, for
  /// `FlowEventLoop.cancelRequests(of:)`.
  package let requester: ObjectIdentifier?
  /// Called once with the line for a log, when a response has come, before the task ends.
  package var onLine: ((ByteString) -> Void)?
  // Unchecked exclusivity: see HotPath.swift.

  /// The place in the log of the request.
  @exclusivity(unchecked) private var place: WorkPlace?
  @exclusivity(unchecked) private var started: Int64 = 0
  @exclusivity(unchecked) private var transfer: HTTPTransfer?
  @exclusivity(unchecked) private var response: FlowHTTPResponse?
  private let client: FlowHTTPClient?

  /// Makes the task of a request; see `start()`.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - client: The client whose limits hold; nil for none.
  ///   - requester: Identifies the part of the program that starts it.
  ///   - loop: The loop that the task belongs to; called on its thread.
  /// - Throws: The mistake in the request, or a `FlowError` when there is no libcurl.
  package convenience init(
    _ request: FlowHTTPRequest, client: FlowHTTPClient? = nil, requester: ObjectIdentifier? = nil,
    on loop: FlowEventLoop
  ) throws {
    try self.init(request, client: client, requester: requester, at: nil, on: loop)
  }

  /// Makes a task for a request that the log shows at `place`, and that continues the loop's trace.
  package init(
    _ request: FlowHTTPRequest, client: FlowHTTPClient? = nil, requester: ObjectIdentifier? = nil,
    at place: WorkPlace?, on loop: FlowEventLoop
  ) throws {
    let multi = try HTTPMulti.of(loop)
    self.place = place
    self.requester = requester
    self.client = client
    super.init(on: loop)
    var sent = request
    if let trace = place?.trace?.context ?? loop.trace {
      sent = request.continuing(trace, at: place)
    }
    let transfer = try HTTPTransfer(sent, on: multi, requester: requester) { [self] in ended($0) }
    if let problem = transfer.replacement?.problem(
      with: transfer.hop.method, transfer.hop.url.text)
    {
      throw FlowError.usage(problem)
    }
    transfer.task = self
    self.transfer = transfer
  }

  /// Sends the request; to be called once, after the task has its owner.
  package func start() {
    guard let transfer, state == .pending else { return }
    if let place { logStart(of: transfer, place) }
    if transfer.replacement != nil {
      transfer.multi.startReplaced(transfer)
    } else if let client {
      client.start(transfer)
    } else {
      transfer.multi.start(transfer)
    }
  }

  /// The transfer that the task has started, which continues after it when the body is streamed.
  package var work: HTTPWork { HTTPWork(transfer) }

  package override var kindName: String { "http" }

  /// The response. Stored here, because a generic property makes each request look up its type.
  package override var result: FlowHTTPResponse? { state == .succeeded ? response : nil }

  /// Stops the request; the task ends at once.
  package override func stopWork(_ error: FlowError) { transfer?.stop(error) }

  private func ended(_ outcome: Result<FlowHTTPResponse, FlowError>) {
    guard let transfer else { return }
    self.transfer = nil
    switch outcome {
    case .success(let response):
      let size = response.stream == nil ? response.bodySize : nil
      log(transfer, response.url, response.status, response.elapsed, size)
      log(transfer, response.url, response.status, size, nil)
      if let stream = response.stream {
        let body = HTTPBodyTask(stream, transfer, on: loop)
        transfer.onStreamEnd = { body.finish($0) }
        transfer.task = body
        // It ends with whatever has started the request.
        owner?.add(body)
      }
      guard state == .pending else { return }
      self.response = response
      endWithKeptResult()
    case .failure(let error):
      if case .response(let response)? = error.request {
        log(transfer, transfer.hop.url.text, response.status, transfer.elapsed, nil)
      }
      onLine = nil
      log(transfer, transfer.hop.url.text, error.responseStatus, nil, error)
      end(error: error)
    }
  }

  /// A URL for messages: without user, password and values of the query.
  package static func shown(_ url: ByteString) -> ByteString { HTTPURL.shown(url) }

  /// A text that may be no URL, for messages: all before the last `@` is left out.
  package static func shownUnread(_ text: ByteString) -> ByteString { HTTPURL.shownUnread(text) }

  /// Passes on a line such as `GET https://api.example/items -> 200 in 0.21s, 14 kB`.
  private func log(
    _ transfer: HTTPTransfer, _ url: ByteString, _ status: Int, _ elapsed: Duration, _ size: Int64?
  ) {
    guard let onLine else { return }
    self.onLine = nil
    let time = FlowValue.text(ofSeconds: (elapsed.inSeconds * 100).rounded() / 100)
    let end = size.map { ", " + Self.sizeText($0) } ?? ""
    let shown = loop.secrets.redacted(url: HTTPURL.shown(url))
    onLine("\(transfer.request.effectiveMethod) \(shown) -> \(status) in \(time)s\(end)")
  }

  private func logStart(of transfer: HTTPTransfer, _ place: WorkPlace) {
    started = loop.now()
    let work = LoggedWork(
      starting: .request, loop.secrets.redacted(url: HTTPURL.bare(transfer.hop.url.text)),
      method: transfer.request.effectiveMethod)
    place.append(starting: work, at: started)
  }

  /// Logs the request as a work of its op.
  private func log(
    _ transfer: HTTPTransfer, _ url: ByteString, _ status: Int?, _ size: Int64?,
    _ error: FlowError?
  ) {
    guard let place else { return }
    self.place = nil
    let work = LoggedWork(
      .request, loop.secrets.redacted(url: HTTPURL.bare(url)), error: error,
      method: transfer.request.effectiveMethod, status: status,
      byteCount: size)
    place.append(work, from: started, to: loop.now())
  }

  /// `14 kB`, `1.2 MB`.
  static func sizeText(_ bytes: Int64) -> ByteString {
    if bytes < 1000 { return "\(bytes) B" }
    var size = Double(bytes) / 1000
    for unit in ["kB", "MB", "GB"] as [ByteString] {
      if size < 999.5 || unit == "GB" {
        let rounded = size < 9.95 ? (size * 10).rounded() / 10 : size.rounded()
        return "\(FlowValue.text(ofSeconds: rounded)) \(unit)"
      }
      size /= 1000
    }
    return "\(bytes) B"
  }
}

/// The work of a request; of one that streams, until the end of its body. Confined to the thread of its
/// loop.
package struct HTTPWork {
  private weak var transfer: HTTPTransfer?

  fileprivate init(_ transfer: HTTPTransfer?) { self.transfer = transfer }

  /// Whether it hasn't ended.
  package var isUnderway: Bool { transfer?.hasEnded == false }

  /// Ends it at once, with an error.
  package func stop(_ error: FlowError) { transfer?.stop(error) }
}

extension FlowEventLoop {
  /// Stops the requests, and the bodies that are received, of a part of the program.
  package func cancelRequests(of requester: ObjectIdentifier) {
    cancelRequests(
      of: requester, looseOnly: false,
      because: .cancelled(reason: "the host of the script was closed"))
  }

  /// Stops those of them that neither an op nor another task owns.
  package func cancelLooseRequests(of requester: ObjectIdentifier, because error: FlowError) {
    cancelRequests(of: requester, looseOnly: true, because: error)
  }

  private func cancelRequests(
    of requester: ObjectIdentifier, looseOnly: Bool, because error: FlowError
  ) {
    checkThread()
    for transfer in HTTPMulti.existing(of: self)?.transfers ?? [] {
      guard let task = transfer.task, transfer.requester == requester else { continue }
      if !looseOnly || task.owner == nil { transfer.stop(error) }
    }
  }
}

extension FlowError {
  /// The status of the response that the error is about.
  fileprivate var responseStatus: Int? {
    if case .response(let response)? = request { response.status } else { nil }
  }
}

extension FlowHTTPRequest {
  /// Sends the request, or lets it wait while there are too many. Called on the loop's thread.
  ///
  /// ```swift
  /// let response = try await FlowHTTPRequest("https://shop.example/items").start(on: loop).value
  /// print(response.status, response.text ?? "")
  /// ```
  ///
  /// - Parameters:
  ///   - loop: The loop that the task belongs to, by default the current one.
  ///   - client: The client whose settings and limits hold; nil for none.
  /// - Returns: The task of the response.
  /// - Throws: The mistake in the request, or a `FlowError` when there is no libcurl.
  @discardableResult
  public func start(
    on loop: FlowEventLoop = .current, client: FlowHTTPClient? = nil
  ) throws -> FlowTask<FlowHTTPResponse> {
    let request = client?.completing(self, hiding: loop.secrets) ?? self
    let task = try HTTPTask(request, client: client, on: loop)
    task.start()
    return task
  }
}
