internal import CCurl
internal import FlowEngine
internal import FlowSystem

/// A request on its way: the requests that redirects lead to, and the response.
///
/// The callbacks of the library only note what has come; code that waits is notified after the library
/// has returned. Confined to its loop's thread.
final class HTTPTransfer {
  let request: FlowHTTPRequest
  let multi: HTTPMulti
  // Unchecked exclusivity: see HotPath.swift.

  /// Called once: with the response (of a stream: when its header is complete), or the error.
  @exclusivity(unchecked) private var completion: ((Result<FlowHTTPResponse, FlowError>) -> Void)?
  /// Called at the end of a stream whose response was delivered.
  @exclusivity(unchecked) var onStreamEnd: ((FlowError?) -> Void)?
  /// Called when the transfer doesn't use its place any more.
  @exclusivity(unchecked) var onLeave: (() -> Void)?

  /// The task whose work this is: the request's, later its streamed body's; nil after the end.
  /// Not weak, as each retain of an object that is referred to weakly costs several times as much.
  @exclusivity(unchecked) var task: AnyFlowTask?
  /// Identifies the part of the program that has started the request.
  let requester: ObjectIdentifier?

  /// The library's side; set while the library works.
  @exclusivity(unchecked) private(set) var easy: OpaquePointer?
  /// Where `HTTPMulti` has it, while the library works.
  @exclusivity(unchecked) var activeIndex: Int?
  @exclusivity(unchecked) private(set) var hasEnded = false
  @exclusivity(unchecked) private var hasBegun = false
  @exclusivity(unchecked) private var start: Int64 = 0
  @exclusivity(unchecked) private var deadlineTimer: LoopTimer?
  @exclusivity(unchecked) private var isHolding = false

  // The request that is being sent: the first, or one that a redirect has led to.
  @exclusivity(unchecked) var hop: HTTPHop
  @exclusivity(unchecked) var upload: HTTPUpload?
  /// How much of a body in memory the library has taken by `fill`.
  @exclusivity(unchecked) var sentBytes = 0
  @exclusivity(unchecked) var followed = 0

  // The response.
  @exclusivity(unchecked) var head = HTTPHead()
  @exclusivity(unchecked) var body = HTTPBodyBuffer()
  @exclusivity(unchecked) var download: HTTPDownload?
  @exclusivity(unchecked) weak var stream: HTTPStream?
  /// Kept until it is delivered with the response.
  @exclusivity(unchecked) var newStream: HTTPStream?
  @exclusivity(unchecked) var isPaused = false
  @exclusivity(unchecked) var lastMoved: Int64 = 0
  /// The failure that has ended the transfer from within a callback.
  @exclusivity(unchecked) var failure: FlowError?
  /// The code that responds instead of servers.
  let replacement: (any HTTPReplacement)?
  /// The request that it responds to now.
  @exclusivity(unchecked) var replaced: ReplacedRequest?
  @exclusivity(unchecked) var progress: (done: Int64, total: Int64)?

  /// - Throws: The mistake in the request.
  init(
    _ request: FlowHTTPRequest, on multi: HTTPMulti, requester: ObjectIdentifier?,
    completion: @escaping (Result<FlowHTTPResponse, FlowError>) -> Void
  ) throws(HTTPMisuse) {
    if let misuse = request.misuse { throw misuse }
    self.request = request
    self.requester = requester
    self.multi = multi
    self.completion = completion
    replacement = multi.replacement
    hop = try HTTPHop(request, hiding: multi.loop.secrets)
  }

  var loop: FlowEventLoop { multi.loop }

  /// `GET https://api.example/items`, for messages.
  var title: ByteString { "\(hop.method) \(loop.secrets.redacted(url: hop.url.shown))" }

  /// The seconds since it began.
  var elapsed: Duration { .nanoseconds(present - start) }

  /// The present time: the loop's clock has it where no server is involved.
  private var present: Int64 { replacement == nil ? Self.now : loop.now() }

  // MARK: Start

  /// Keeps a virtual clock from advancing.
  func hold() {
    guard !isHolding else { return }
    isHolding = true
    loop.outsideWork += 1
    multi.beginHolding()
  }

  private func unhold() {
    guard isHolding else { return }
    isHolding = false
    if !loop.isShutDown { loop.outsideWork -= 1 }
    multi.endHolding()
  }

  /// Begins; called when there is a place for it.
  func begin() {
    if !hasBegun {
      hasBegun = true
      start = present
      armDeadlineTimer()
    }
    send()
  }

  /// Sends the request of `hop`.
  private func send() {
    head = HTTPHead()
    body = HTTPBodyBuffer()
    failure = nil
    newStream = nil
    upload = nil
    sentBytes = 0
    download = request.save.map { HTTPDownload($0, resumes: request.resumes) }
    do throws(FlowError) {
      // Before anything is asked for.
      try download?.prepare()
      hop.part = hop.restarts ? nil : download?.part(of: hop.url.text)
      if let replacement {
        let replaced = ReplacedRequest(hop, of: request)
        replaced.onEnd = { [self] end in takeReplaced(end) }
        self.replaced = replaced
        replacement.start(replaced)
        return
      }
      if hop.hasBody { upload = try hop.openBody(request) }
      let context = Unmanaged.passUnretained(self).toOpaque()
      guard let made = multi.makeEasy(Self.events, context) else { throw Self.noMemory }
      easy = made
      guard
        hop.setOptions(
          of: made, for: request, upload: upload, environment: multi.environment)
      else { throw Self.noMemory }
      lastMoved = multi.now
      multi.watchMovement(until: idleEnd)
      guard multi.add(self, made) else { throw Self.noMemory }
    } catch {
      leave()
      end(.failure(error))
    }
  }

  static let noMemory = FlowError(.error, "there is no memory for an HTTP request")

  static var now: Int64 { SystemClock.read(CLOCK_MONOTONIC) }

  // MARK: After the library has returned

  /// Delivers what callbacks have noted.
  func deliver() {
    if let progress, !hasEnded, let onProgress = request.onProgress {
      self.progress = nil
      onProgress(progress.done, progress.total > 0 ? progress.total : nil)
    }
    if let made = newStream, !hasEnded {
      newStream = nil
      let response = response(stream: made)
      complete(.success(response))
    }
    stream?.notify(on: loop)
  }

  /// Returns what tells the library to pause: the same bytes come again.
  func pause() -> Int {
    isPaused = true
    unhold()
    // It would keep a script that doesn't read any more.
    cancelDeadline()
    return Int(CURL_WRITEFUNC_PAUSE)
  }

  /// Continues a stream that was full.
  func resume() {
    guard isPaused else { return }
    isPaused = false
    hold()
    armDeadlineTimer()
    loop.enqueue { [self] in
      guard !hasEnded, let easy else { return }
      // A reader that is faster than the timer would pause, which cancels it, and continue until the end.
      if let timeout = request.timeout, elapsed >= timeout { return timedOut(after: timeout) }
      lastMoved = Self.now
      multi.watchMovement(until: idleEnd)
      multi.perform { _ = ccurl_continue(easy) }
    }
  }

  /// Called when the library has ended it.
  func ended(_ code: CURLcode) {
    guard let easy else { return }
    head.readTimes(easy)
    let isCut = body.isCut && code == CURLE_WRITE_ERROR
    let succeeded = code == CURLE_OK || isCut
    if !succeeded, failure == nil, !hopWasSent, ccurl_lacks_descriptor(easy),
      multi.canWaitForDescriptor
    {
      leave()
      multi.waitForDescriptor(self)
      return
    }
    var failed = succeeded ? nil : failure ?? networkError(code, easy)
    if succeeded, !head.isComplete {
      // The library takes a header without an end.
      failed = receiveError("the connection was closed within the header")
    } else if succeeded, !isCut, body.kind != .excerpt, let decoder = body.decoder,
      !decoder.isComplete
    {
      failed = receiveError(
        "the body ends too early: its encoding (\(head.encodings ?? "")) has an end of its own")
    }
    let lacksStream = body.kind == .stream && stream == nil
    leave()
    settle(failed, lacksStream: lacksStream)
  }

  /// Ends the request of `hop`: with its failure or its response, or goes where that leads.
  private func settle(_ failed: FlowError?, lacksStream: Bool) {
    if lacksStream { return end(.failure(.cancelled(reason: "the body isn't read"))) }
    if let failed { return end(.failure(failed)) }
    if hop.restarts, hop.part != nil {
      hop.part = nil
      return continueWithNext()
    }
    if head.status == 416, hop.part != nil {
      hop.restarts = true
      return continueWithNext()
    }
    if body.kind == .file, let range = body.range, let size = download?.size,
      size < range.total ?? range.end
    {
      // A server may limit the size of a range.
      guard size > range.start else {
        let problem: ByteString = "the response has no byte of the file from byte \(range.start) on"
        return end(.failure(receiveError(problem)))
      }
      return continueWithNext()
    }
    if body.kind == .ignored, let location = redirect {
      return follow(location)
    }
    finish()
  }

  /// Takes the response, or the error, of code instead of a server.
  private func takeReplaced(_ end: ReplacedRequest.End) {
    replaced = nil
    switch end {
    case .failure(let error): self.end(.failure(error))
    case .response(let status, let headers, let content):
      let lines: [ByteString] =
        ["HTTP/1.1 \(status)"] + headers.map { "\($0.name): \($0.value)" } + [""]
      let isTaken = lines.allSatisfy { line in line.bytes.withUnsafeBytes { header($0) } }
      if isTaken, hop.method != "HEAD", !content.isEmpty {
        _ = content.bytes.withUnsafeBytes { receive($0) }
      }
      settle(failure, lacksStream: false)
    }
  }

  /// Takes no end of the replaced request any more; returns the request.
  private func dropReplaced() -> ReplacedRequest? {
    let dropped = replaced
    replaced = nil
    dropped?.onEnd = nil
    return dropped
  }

  /// Where the response redirects to, if this request may go there.
  var redirect: ByteString? {
    head.redirect.flatMap { request.keepsMethod && hop.becomesGet(by: head.status) ? nil : $0 }
  }

  private func follow(_ location: ByteString) {
    guard followed < request.redirects else {
      return end(.failure(httpError("more than \(request.redirects) redirects")))
    }
    followed += 1
    do throws(HTTPMisuse) {
      try hop.follow(location, status: head.status)
    } catch {
      return end(.failure(httpError("redirects to something else: \(error.problem)")))
    }
    if hop.hidesBody(of: request) {
      return end(
        .failure(httpError("redirects to another server, which doesn't get the secret in the body"))
      )
    }
    continueWithNext()
  }

  /// Sends the next request of this transfer.
  private func continueWithNext() {
    download = nil
    multi.beginAgain(self)
  }

  private func finish() {
    let isRefused = request.keepsMethod && head.redirect != nil
    if body.kind == .excerpt || request.isChecked && head.status >= 400 || isRefused {
      return end(.failure(statusError()))
    }
    if body.kind == .file {
      do throws(FlowError) { try download?.complete() } catch { return end(.failure(error)) }
    }
    if let made = newStream {
      newStream = nil
      let response = response(stream: made)
      complete(.success(response))
    }
    end(body.kind == .stream ? nil : .success(response(stream: nil)))
  }

  private func response(stream: HTTPStream?) -> FlowHTTPResponse {
    FlowHTTPResponse(
      status: head.status, url: hop.url.text, lines: head.lines,
      body: ByteString(body.bytes), saved: body.kind == .file ? request.save : nil,
      bodySize: body.kind == .file ? download?.size ?? body.size : body.size,
      elapsed: elapsed, timings: head.timings, stream: stream)
  }

  /// Stops it; it ends at once.
  func stop(_ error: FlowError) {
    guard !hasEnded else { return }
    if let replaced = dropReplaced() { replacement?.cancel(replaced, error) }
    if let easy { multi.remove(self, easy) }
    leave()
    end(.failure(error))
    multi.startWaiting()
  }

  /// Ends it without a word, for a loop that is shut down.
  func abandon() {
    hasEnded = true
    completion = nil
    onStreamEnd = nil
    onLeave = nil
    task = nil
    _ = dropReplaced()
    if let easy { multi.remove(self, easy) }
    leave()
    cancelDeadline()
  }

  /// Releases the library's side.
  private func leave() {
    if let easy { ccurl_easy_free(easy) }
    easy = nil
  }

  private func cancelDeadline() {
    deadlineTimer?.cancel()
    deadlineTimer = nil
  }

  private func end(_ outcome: Result<FlowHTTPResponse, FlowError>?) {
    guard !hasEnded else { return }
    hasEnded = true
    multi.forget(self)
    cancelDeadline()
    unhold()
    download?.discard()
    download = nil
    upload = nil
    // A queue may still hold the transfer.
    body.drop()
    let onLeave = onLeave
    self.onLeave = nil
    onLeave?()
    if completion != nil {
      if let outcome { complete(outcome) }
    } else {
      let onStreamEnd = onStreamEnd
      self.onStreamEnd = nil
      if case .failure(let error)? = outcome { onStreamEnd?(error) } else { onStreamEnd?(nil) }
    }
    task = nil
  }

  private func complete(_ outcome: Result<FlowHTTPResponse, FlowError>) {
    let completion = completion
    self.completion = nil
    completion?(outcome)
  }

  // MARK: Time

  /// Limits the rest of the time that the request has.
  private func armDeadlineTimer() {
    guard let timeout = request.timeout else { return }
    let left = timeout - elapsed
    let end = { [weak self] in
      self?.timedOut(after: timeout) ?? ()
    }
    deadlineTimer =
      replacement == nil
      ? loop.scheduleOutside(after: left, end)
      : loop.schedule(after: left, end)
  }

  /// Checks whether a byte has moved lately; returns when to check again, in nanoseconds. Ends the transfer
  /// otherwise.
  func checkMovement() -> Int64? {
    guard let easy, !hasEnded, !isPaused else { return nil }
    let now = Self.now
    // Connecting has a limit of its own.
    if ccurl_size(easy, CURLINFO_PRETRANSFER_TIME_T) == 0 { lastMoved = now }
    if now < idleEnd { return idleEnd }
    timedOut(
      "as no byte moved for \(FlowValue.text(of: request.idleTimeout)) (idle_timeout)")
    return nil
  }

  /// When it ends unless a byte moves.
  private var idleEnd: Int64 {
    lastMoved.later(by: request.idleTimeout.clampedNanoseconds)
  }

  private func timedOut(after timeout: Duration) {
    timedOut("after \(FlowValue.text(of: timeout)) (timeout)")
  }

  private func timedOut(_ limit: ByteString) { stop(timeoutError(limit)) }
}
