internal import CCurl
internal import FlowEngine
internal import Glibc

/// A request on its way: the requests that redirects lead to, and the response.
///
/// The callbacks of the library only note what has come; code that waits is notified after the library
/// has returned. Confined to its loop's thread.
final class HTTPTransfer {
  let request: HTTPRequest
  let multi: HTTPMulti
  /// Called once: with the response (of a stream: when its header is complete), or the error.
  private var completion: ((Result<HTTPResponse, FlowError>) -> Void)?
  /// Called at the end of a stream whose response was delivered.
  var onStreamEnd: ((FlowError?) -> Void)?
  /// Called when the transfer doesn't use its place any more.
  var onLeave: (() -> Void)?

  /// The task whose work this is: the request's, later that of its streamed body.
  weak var task: AnyFlowTask?
  /// Identifies the part of the program that has started the request.
  let requester: ObjectIdentifier?

  /// The library's side; set while the library works.
  private(set) var easy: OpaquePointer?
  private(set) var hasEnded = false
  private var hasBegun = false
  private var start: Int64 = 0
  private var deadlineTimer: Timer?
  private var idleTimer: Timer?
  private var isHolding = false

  // The request that is being sent: the first, or one that a redirect has led to.
  private(set) var hop: HTTPHop
  private var upload: HTTPUpload?
  /// How much of a body in memory the library has taken by `fill`.
  private var sentBytes = 0
  private var followed = 0

  // The response.
  private(set) var head = HTTPHead()
  private var body = HTTPBodyBuffer()
  private var download: HTTPDownload?
  private(set) weak var stream: HTTPStream?
  /// Kept until it is delivered with the response.
  private var newStream: HTTPStream?
  private var isPaused = false
  private var lastMoved: Int64 = 0
  /// The failure that has ended the transfer from within a callback.
  private var failure: FlowError?
  /// The code that responds instead of servers.
  let replacement: (any HTTPReplacement)?
  /// The request that it responds to now.
  private var replaced: ReplacedRequest?
  private var progress: (done: Int64, total: Int64)?

  /// - Throws: The mistake in the request.
  init(
    _ request: HTTPRequest, on multi: HTTPMulti, requester: ObjectIdentifier?,
    completion: @escaping (Result<HTTPResponse, FlowError>) -> Void
  ) throws(HTTPMisuse) {
    if let misuse = request.misuse { throw misuse }
    self.request = request
    self.requester = requester
    self.multi = multi
    self.completion = completion
    replacement = multi.loop.httpReplacement
    hop = try HTTPHop(request)
  }

  private var loop: EventLoop { multi.loop }

  /// `GET https://api.example/items`, for messages.
  var title: ByteString { "\(hop.method) \(hop.url.shown)" }

  /// The seconds since it began.
  var elapsed: Double { Double(present - start) / 1e9 }

  /// The present time: that of the loop's clock where no server is involved.
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
    hop.part = hop.restarts ? nil : download?.part(of: hop.url.text)
    do throws(FlowError) {
      // Before anything is asked for.
      try download?.prepare()
      if let replacement {
        let replaced = ReplacedRequest(hop, of: request)
        replaced.onEnd = { [self] end in takeReplaced(end) }
        self.replaced = replaced
        replacement.start(replaced)
        return
      }
      if hop.hasBody { upload = try hop.openBody(request) }
      guard let made = multi.takeEasy() else { throw Self.noMemory }
      easy = made
      ccurl_easy_prepare(made, Self.events, Unmanaged.passUnretained(self).toOpaque())
      guard hop.setOptions(of: made, for: request, upload: upload) else { throw Self.noMemory }
      lastMoved = Self.now
      armIdleTimer(request.idleTimeout)
      guard multi.add(self, made) else { throw Self.noMemory }
    } catch {
      leave()
      end(.failure(error))
    }
  }

  static let noMemory = FlowError(.error, "there is no memory for an HTTP request")

  static var now: Int64 { SystemClock.read(CLOCK_MONOTONIC) }

  // MARK: Callbacks of the library

  /// The functions that the library calls.
  // Safe: nothing changes them.
  nonisolated(unsafe) static let events: UnsafePointer<ccurl_transfer_events> = {
    let events = UnsafeMutablePointer<ccurl_transfer_events>.allocate(capacity: 1)
    events.initialize(
      to: ccurl_transfer_events(
        header: { context, line, count in
          HTTPTransfer.from(context).header(UnsafeRawBufferPointer(start: line, count: count))
        },
        receive: { context, bytes, count in
          HTTPTransfer.from(context).receive(UnsafeRawBufferPointer(start: bytes, count: count))
        },
        send: { context, buffer, room in HTTPTransfer.from(context).fill(buffer, room) },
        seek: { context, position in HTTPTransfer.from(context).seek(position) },
        moved: { context, received, total, sent, size in
          HTTPTransfer.from(context).moved(received, total, sent, size)
        }))
    return UnsafePointer(events)
  }()

  static func from(_ context: UnsafeMutableRawPointer?) -> HTTPTransfer {
    guard let context else { misuse("libcurl has lost the context of a transfer") }
    // Safe: the multi holds a transfer while the library has it.
    return Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue()
  }

  private func header(_ line: UnsafeRawBufferPointer) -> Bool {
    lastMoved = Self.now
    guard head.add(line) else {
      failure = .network(
        hidden("\(title) failed: the header is larger than \(HTTPHead.limit >> 10) kB"),
        phase: .receive, sent: true, mayRepeat: false)
      return false
    }
    guard head.isComplete, head.isFresh else { return true }
    head.isFresh = false
    do throws(FlowError) { try prepareBody() } catch {
      failure = error
      return false
    }
    return true
  }

  /// Decides what becomes of the body.
  private func prepareBody() throws(FlowError) {
    if head.redirect != nil, request.redirects > 0 {
      body.kind = .ignored
    } else if request.isChecked, head.status >= 400 {
      body.kind = .excerpt
    } else if let download, (200..<300).contains(head.status) {
      body.kind = .file
      let tag = head.versionTag
      if head.status == 206, let part = hop.part {
        guard head.rangeStart == part.size else { return restart() }
        try download.open(at: part.size, tag: part.tag, of: hop.url.text)
      } else {
        try download.open(at: 0, tag: tag, of: hop.url.text)
      }
    } else if request.streams {
      body.kind = .stream
      let made = HTTPStream()
      newStream = made
      stream = made
      multi.touch(self)
    }
  }

  /// Ignores this response, and sends the request again without a range.
  private func restart() {
    hop.restarts = true
    body.kind = .ignored
  }

  /// The most bytes of the body.
  private var limit: Int64? {
    switch body.kind {
    case .memory: Int64(request.maxBytes ?? HTTPRequest.memoryLimit)
    case .file, .stream: request.maxBytes.map { Int64($0) }
    case .excerpt, .ignored: nil
    }
  }

  private func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    if !isPaused { lastMoved = Self.now }
    let count = Int64(bytes.count)
    if let limit, body.size + count > limit {
      failure = httpError("the body has more than \(limit) bytes (max_bytes)")
      return 0
    }
    switch body.kind {
    case .memory:
      if body.bytes.isEmpty, let length = head.length, length <= 1 << 20, length >= count {
        body.bytes.reserveCapacity(Int(length))
      }
      body.bytes.append(contentsOf: bytes)
    case .file:
      do throws(FlowError) { try download?.write(bytes) } catch {
        failure = error
        return 0
      }
    case .stream:
      // Nobody reads it any more.
      guard let stream else { return 0 }
      if stream.isFull {
        pause()
        return Int(CURL_WRITEFUNC_PAUSE)
      }
      stream.append(bytes)
      multi.touch(self)
    case .excerpt, .ignored:
      let limit = body.kind == .excerpt ? RequestFailure.Response.bodyLimit : 0
      body.bytes.append(contentsOf: bytes.prefix(max(0, limit - body.bytes.count)))
      if body.size + count > HTTPBodyBuffer.patience {
        body.isCut = true
        return 0
      }
    }
    body.size += count
    return bytes.count
  }

  private func fill(_ buffer: UnsafeMutablePointer<CChar>?, _ room: Int) -> Int {
    lastMoved = Self.now
    if let buffer, upload == nil, case .bytes(let bytes, _)? = request.body {
      let count = min(room, bytes.count - sentBytes)
      bytes.withUnsafeBytes { all in
        if count > 0, let start = all.baseAddress { memcpy(buffer, start + sentBytes, count) }
      }
      sentBytes += count
      return count
    }
    guard let buffer, let upload, let count = upload.read(buffer, room) else {
      failure = FlowError(.error, "\(title): the file that is sent can't be read")
      return Int(CURL_READFUNC_ABORT)
    }
    return count
  }

  /// Refuses to send a request again that the server may have acted on: the library does so when a
  /// kept connection ends.
  private func seek(_ position: Int64) -> Bool {
    guard request.mayRepeat else { return false }
    upload?.seek(position)
    return upload != nil
  }

  private func moved(_ received: Int64, _ total: Int64, _ sent: Int64, _ size: Int64) {
    if sent != body.sent {
      body.sent = sent
      lastMoved = Self.now
    }
    guard request.onProgress != nil else { return }
    let next = head.status == 0 && size > 0 ? (sent, size) : (received, total)
    if progress?.done != next.0, next.0 > 0 {
      progress = next
      multi.touch(self)
    }
  }

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

  private func pause() {
    isPaused = true
    unhold()
    // They would keep a script that doesn't read any more.
    cancelTimers()
  }

  /// Continues a stream that was full.
  func resume() {
    guard isPaused else { return }
    isPaused = false
    hold()
    armDeadlineTimer()
    loop.enqueue { [self] in
      guard !hasEnded, let easy else { return }
      lastMoved = Self.now
      armIdleTimer(request.idleTimeout)
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
      failed = .network(
        "\(hidden(title)) failed: the connection was closed within the header", phase: .receive,
        sent: true, mayRepeat: request.mayRepeat)
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
    if body.kind == .ignored, let location = head.redirect {
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
    continueWithNext()
  }

  /// Sends the next request of this transfer.
  private func continueWithNext() {
    download = nil
    multi.beginAgain(self)
  }

  private func finish() {
    if body.kind == .excerpt || request.isChecked && head.status >= 400 {
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

  private func response(stream: HTTPStream?) -> HTTPResponse {
    HTTPResponse(
      status: head.status, url: hop.url.text, headers: head.lines, version: head.version,
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
    _ = dropReplaced()
    if let easy { multi.remove(self, easy) }
    leave()
    cancelTimers()
  }

  /// Returns the library's side.
  private func leave() {
    if let easy { multi.putBack(easy) }
    easy = nil
    idleTimer?.cancel()
    idleTimer = nil
  }

  private func cancelTimers() {
    deadlineTimer?.cancel()
    deadlineTimer = nil
    idleTimer?.cancel()
    idleTimer = nil
  }

  private func end(_ outcome: Result<HTTPResponse, FlowError>?) {
    guard !hasEnded else { return }
    hasEnded = true
    multi.forget(self)
    cancelTimers()
    unhold()
    download?.discard()
    download = nil
    upload = nil
    // A queue may still hold the transfer.
    body.bytes = []
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
  }

  private func complete(_ outcome: Result<HTTPResponse, FlowError>) {
    let completion = completion
    self.completion = nil
    completion?(outcome)
  }

  // MARK: Time

  /// Limits the rest of the time that the request has.
  private func armDeadlineTimer() {
    guard let timeout = request.timeout else { return }
    let left = max(0, timeout - elapsed)
    let end = { [weak self] in
      self?.timedOut("after \(Value.text(ofSeconds: timeout))s (timeout)") ?? ()
    }
    deadlineTimer =
      replacement == nil
      ? loop.scheduleOutside(after: left, end)
      : loop.schedule(at: loop.deadline(after: left), end)
  }

  private func armIdleTimer(_ seconds: Double) {
    idleTimer?.cancel()
    idleTimer = loop.scheduleOutside(after: seconds) { [weak self] in self?.checkMovement() }
  }

  private func checkMovement() {
    guard let easy, !hasEnded, !isPaused else { return }
    let now = Self.now
    // Connecting has a limit of its own.
    if ccurl_size(easy, CURLINFO_PRETRANSFER_TIME_T) == 0 { lastMoved = now }
    let left = request.idleTimeout - Double(now - lastMoved) / 1e9
    guard left <= 0 else { return armIdleTimer(left) }
    timedOut("as no byte moved for \(Value.text(ofSeconds: request.idleTimeout))s (idle_timeout)")
  }

  private func timedOut(_ limit: ByteString) { stop(timeoutError(limit)) }

  // MARK: Errors

  private func timeoutError(_ limit: ByteString) -> FlowError {
    let phase = easy.map { self.phase($0) } ?? (replaced == nil ? .connect : .wait)
    let wasSent = wasSent
    return FlowError(.timeout, hidden("\(title) timed out \(limit), \(phase.progress)")).with {
      $0.request = .connection(phase: phase, sent: wasSent)
      $0.isTransient = request.mayRepeat || !wasSent
    }
  }

  private func networkError(_ code: CURLcode, _ easy: OpaquePointer) -> FlowError {
    if code == CURLE_OUT_OF_MEMORY {
      guard wasSent else { return Self.noMemory }
      // The library's way to refuse a line of more than 100 kB.
      return .network(
        hidden("\(title) failed: a line of the header is too long"), phase: .receive, sent: true,
        mayRepeat: false)
    }
    if code == CURLE_OPERATION_TIMEDOUT {
      let seconds = Value.text(ofSeconds: request.connectTimeout)
      return timeoutError("after \(seconds)s (connect_timeout)")
    }
    if code == CURLE_SEND_FAIL_REWIND {
      return .network(
        hidden("\(title) failed: the connection was closed before the response"), phase: .wait,
        sent: true, mayRepeat: false)
    }
    let answer = ccurl_number(easy, CURLINFO_HTTP_CONNECTCODE)
    if answer >= 300 {
      return .network(
        hidden("\(title) failed: the proxy's response is \(answer)"), phase: .connect, sent: false,
        mayRepeat: false)
    }
    var reason = ByteString(cString: ccurl_problem(easy)).trimmed
    if reason.isEmpty { reason = ByteString(cString: ccurl_text(code)) }
    let number = Int32(clamping: ccurl_number(easy, CURLINFO_OS_ERRNO))
    if number != 0, let text = strerror(number).map({ ByteString(cString: $0) }),
      !reason.contains(text)
    {
      reason = "\(reason): \(text)"
    }
    return .network(
      hidden("\(title) failed: \(reason)"), phase: phase(easy, code), sent: wasSent,
      code: number == 0 ? nil : Int64(number),
      isCertificate: HTTPPhases.lasting.contains(code.rawValue), mayRepeat: request.mayRepeat)
  }

  /// The error of a response that can't be used.
  private func httpError(_ problem: ByteString) -> FlowError {
    .http(hidden("\(title) -> \(head.status): \(problem)"), responseExcerpt, mayRepeat: false)
  }

  /// The error of a status.
  private func statusError() -> FlowError {
    let reason = head.reason.isEmpty ? "" : " " + head.reason
    var wait: Double?
    if let text = HTTPResponse.header("retry-after", in: head.lines) {
      wait = RetryAfter.seconds(text, now: Int64(time(nil)))
    }
    return .http(
      hidden("\(title) -> \(head.status)\(reason)"), responseExcerpt, retryAfter: wait,
      mayRepeat: request.mayRepeat)
  }

  private var responseExcerpt: RequestFailure.Response {
    RequestFailure.Response(
      status: head.status, headers: head.lines, body: ByteString(body.bytes))
  }

  /// Whether the server, or one that has redirected, may have received the request.
  private var wasSent: Bool { followed > 0 || replaced != nil || hopWasSent }

  /// Whether the server may have received the request of `hop`.
  private var hopWasSent: Bool {
    head.status != 0 || easy.map { HTTPPhases.wasSent($0) } ?? head.wasSent
  }

  private func phase(
    _ easy: OpaquePointer, _ code: CURLcode = CURLE_OK
  ) -> RequestFailure.Phase {
    HTTPPhases.phase(
      easy, code, hasHead: head.status != 0, isTLS: hop.url.scheme == "https",
      bodySize: hop.bodySize)
  }

  private func hidden(_ text: ByteString) -> ByteString { loop.secrets.redacted(text) }
}

/// The body of a response, as far as it is kept.
struct HTTPBodyBuffer {
  /// What becomes of a body.
  enum Kind {
    case memory, file, stream
    /// The start is kept for an error.
    case excerpt
    case ignored
  }

  /// The most bytes of a body that nobody wants; a connection isn't worth more.
  static let patience: Int64 = 1 << 20

  var kind = Kind.memory
  var bytes: [UInt8] = []
  /// The number of bytes that have come.
  var size: Int64 = 0
  /// The number of bytes of the request's body that were sent.
  var sent: Int64 = 0
  /// Whether the rest of an unwanted body wasn't waited for.
  var isCut = false
}
