internal import CCurl
internal import FlowEngine
internal import FlowSystem

/// The functions that the library calls: each notes what has come.
extension HTTPTransfer {
  /// The functions that the library calls.
  // Safe: nothing changes them.
  nonisolated(unsafe) static let events: UnsafePointer<ccurl_transfer_events> = {
    let events = UnsafeMutablePointer<ccurl_transfer_events>.allocate(capacity: 1)
    events.initialize(
      to: ccurl_transfer_events(
        header: { context, line, count in
          HTTPTransfer.lend(context) {
            $0.header(UnsafeRawBufferPointer(start: line, count: count))
          }
        },
        receive: { context, bytes, count in
          HTTPTransfer.lend(context) {
            $0.receive(UnsafeRawBufferPointer(start: bytes, count: count))
          }
        },
        send: { context, buffer, room in HTTPTransfer.lend(context) { $0.fill(buffer, room) } },
        seek: { context, position in HTTPTransfer.lend(context) { $0.seek(position) } },
        moved: { context, received, total, sent, size in
          HTTPTransfer.lend(context) { $0.moved(received, total, sent, size) }
        }))
    return UnsafePointer(events)
  }()

  /// Lends a callback the transfer, which isn't retained meanwhile: that would cost as much as most
  /// callbacks.
  @inline(__always)
  private static func lend<Result>(
    _ context: UnsafeMutableRawPointer?, _ body: (HTTPTransfer) -> Result
  ) -> Result {
    guard let context else { misuse("libcurl has lost the context of a transfer") }
    // Safe: the multi holds a transfer while the library has it.
    return Unmanaged<HTTPTransfer>.fromOpaque(context)._withUnsafeGuaranteedRef(body)
  }

  static func from(_ context: UnsafeMutableRawPointer?) -> HTTPTransfer {
    guard let context else { misuse("libcurl has lost the context of a transfer") }
    // Safe: the multi holds a transfer while the library has it.
    return Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue()
  }

  func header(_ line: UnsafeRawBufferPointer) -> Bool {
    lastMoved = multi.now
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
    if let problem = head.problem { throw receiveError(problem) }
    if redirect != nil, request.redirects > 0 {
      body.kind = .ignored
    } else if request.isChecked, head.status >= 400 {
      body.kind = .excerpt
    } else if let download, (200..<300).contains(head.status) {
      body.kind = .file
      let tag = head.versionTag
      if head.status == 206, let part = hop.part {
        // A part of a compressed content can't be continued, and without the size of the content nobody knows its end.
        guard let range = head.range, range.start == part.size, head.canBe(of: part.tag),
          head.encodings == nil, range.total != nil
        else { return restart() }
        body.range = range
        try download.open(at: part.size, tag: part.tag, of: hop.url.text)
      } else {
        try download.open(at: 0, tag: head.encodings == nil ? tag : nil, of: hop.url.text)
      }
    } else if request.streams {
      body.kind = .stream
      let made = HTTPStream(partLimit: request.maxBytes ?? FlowHTTPRequest.memoryLimit)
      newStream = made
      stream = made
      multi.touch(self)
    }
    if body.kind != .ignored, replaced == nil, let encodings = head.encodings,
      !hop.asksForEncodings(request)
    {
      do { body.decoder = try HTTPDecoder(encodings) } catch { throw Self.noMemory }
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
    case .memory: Int64(request.maxBytes ?? FlowHTTPRequest.memoryLimit)
    case .file, .stream: request.maxBytes.map { Int64($0) }
    case .excerpt, .ignored: nil
    }
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    if !isPaused { lastMoved = multi.now }
    guard let decoder = body.decoder else { return take(bytes) }
    do throws(HTTPDecoder.Problem) {
      let isTaken = try decoder.decode(bytes, while: { !isFull }) { take($0) == $0.count }
      if isTaken { return bytes.count }
      return isFull ? pause() : 0
    } catch {
      if body.kind == .excerpt {
        body.decoder = nil
        body.kind = .ignored
        return bytes.count
      }
      failure =
        error == .noMemory
        ? Self.noMemory
        : receiveError("the body isn't what its encoding says: \(head.encodings ?? "")")
      return 0
    }
  }

  /// Whether a stream has no room for more.
  private var isFull: Bool { body.kind == .stream && stream?.isFull == true }

  /// Takes a part of the content.
  private func take(_ bytes: UnsafeRawBufferPointer) -> Int {
    let count = Int64(bytes.count)
    if let download, let range = body.range, body.kind == .file, download.size + count > range.end {
      // Which bytes they are isn't known.
      restart()
    }
    let before = body.kind == .file ? download?.size ?? 0 : body.size
    if let limit, before + count > limit {
      failure = httpError("the body has more than \(limit) bytes (max_bytes)")
      return 0
    }
    switch body.kind {
    case .memory:
      if body.bytes.isEmpty, let easy {
        let length = ccurl_size(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
        if length > count, length <= 1 << 20 { body.bytes.reserveCapacity(Int(length)) }
      }
      guard body.append(bytes, loop.memoryMeter) else {
        failure = FlowError(
          .memory,
          hidden(
            "\(title) -> \(head.status): not enough memory for a body of more than \(body.size) bytes"
          ))
        body.drop()
        return 0
      }
    case .file:
      do throws(FlowError) { try download?.write(bytes) } catch {
        failure = error
        return 0
      }
    case .stream:
      // Nobody reads it any more.
      guard let stream else { return 0 }
      if stream.isFull { return pause() }
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
    lastMoved = multi.now
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
      lastMoved = multi.now
    }
    guard request.onProgress != nil else { return }
    var next = head.status == 0 && size > 0 ? (sent, size) : (received, total)
    // Of a download that is continued, what was there counts as well.
    if head.status != 0, let range = body.range {
      next = (received.later(by: range.start), range.total ?? 0)
    }
    if progress?.done != next.0, next.0 > 0 {
      progress = next
      multi.touch(self)
    }
  }
}

/// The errors of a transfer.
extension HTTPTransfer {
  func timeoutError(_ limit: ByteString) -> FlowError {
    let phase = easy.map { self.phase($0) } ?? (replaced == nil ? .connect : .wait)
    return .timeout(
      hidden("\(title) timed out \(limit), \(phase.progress)"), phase: phase, sent: wasSent,
      mayRepeat: request.mayRepeat)
  }

  func networkError(_ code: CURLcode, _ easy: OpaquePointer) -> FlowError {
    if code == CURLE_OUT_OF_MEMORY {
      guard wasSent else { return Self.noMemory }
      // The library's way to refuse a line of more than 100 kB.
      return .network(
        hidden("\(title) failed: a line of the header is too long"), phase: .receive, sent: true,
        mayRepeat: false)
    }
    if code == CURLE_OPERATION_TIMEDOUT {
      return timeoutError("after \(FlowValue.text(of: request.connectTimeout)) (connect_timeout)")
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
    var reason = ByteString(ByteString(cString: ccurl_problem(easy)).trimmed())
    if reason.isEmpty { reason = ByteString(cString: ccurl_text(code)) }
    let number = Int32(clamping: ccurl_number(easy, CURLINFO_OS_ERRNO))
    if number != 0, let text = strerror(number).map({ ByteString(cString: $0) }),
      !reason.contains(text)
    {
      reason = "\(reason): \(text)"
    }
    reason = reason + Sandbox.hintAboutNetwork
    return .network(
      hidden("\(title) failed: \(reason)"), phase: phase(easy, code), sent: wasSent,
      code: number == 0 ? nil : Int64(number),
      isCertificate: HTTPPhases.lasting.contains(code.rawValue), mayRepeat: request.mayRepeat)
  }

  /// The error of a response that didn't come as it should; another attempt may get it.
  func receiveError(_ problem: ByteString) -> FlowError {
    .network(
      hidden("\(title) failed: \(problem)"), phase: .receive, sent: true,
      mayRepeat: request.mayRepeat)
  }

  /// The error of a response that can't be used.
  func httpError(_ problem: ByteString) -> FlowError {
    .http(hidden("\(title) -> \(head.status): \(problem)"), responseExcerpt, mayRepeat: false)
  }

  /// The error of a status.
  func statusError() -> FlowError {
    let reason = head.reason.isEmpty ? "" : " " + head.reason
    var wait: Double?
    if let text = FlowHTTPResponse.header("retry-after", in: head.lines.all) {
      wait = RetryAfter.seconds(text, now: Int64(time(nil)))
    }
    return .http(
      hidden("\(title) -> \(head.status)\(reason)"), responseExcerpt,
      retryAfter: wait.map { .seconds($0) },
      mayRepeat: request.mayRepeat)
  }

  private var responseExcerpt: RequestFailure.Response {
    RequestFailure.Response(
      status: head.status, headers: head.lines.all, body: ByteString(body.bytes))
  }

  /// Whether the server, or one that has redirected, may have received the request.
  private var wasSent: Bool { followed > 0 || replaced != nil || hopWasSent }

  /// Whether the server may have received the request of `hop`.
  var hopWasSent: Bool {
    head.status != 0 || easy.map { HTTPPhases.wasSent($0) } ?? head.wasSent
  }

  private func phase(
    _ easy: OpaquePointer, _ code: CURLcode = CURLE_OK
  ) -> RequestFailure.Phase {
    HTTPPhases.phase(
      easy, code, hasHead: head.status != 0, isTLS: hop.url.isEncrypted,
      bodySize: hop.bodySize)
  }

  func hidden(_ text: ByteString) -> ByteString { loop.secrets.redacted(text) }
}
