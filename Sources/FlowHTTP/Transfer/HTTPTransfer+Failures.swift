internal import CCurl
internal import FlowEngine
internal import Glibc

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
    var reason = ByteString(cString: ccurl_problem(easy)).trimmed
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
    if let text = HTTPResponse.header("retry-after", in: head.lines.all) {
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
