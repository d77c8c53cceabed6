/// The details of a request that failed, in an error of kind `http` or `network`.
package enum RequestFailure: Sendable {
  /// The server's response has a status that is a failure.
  case response(Response)
  /// There is no whole response. `phase` is what the request was doing; `sent` is whether the server
  /// may have received it, and so may have acted on it.
  case connection(phase: Phase, sent: Bool)

  /// A response whose status is a failure.
  package struct Response: Sendable {
    /// How many bytes of a body an error keeps at most.
    package static let bodyLimit = 4096

    /// The status, such as 404.
    package let status: Int
    /// The headers in the order of the response, with names as the server has written them.
    package let headers: [(name: ByteString, value: ByteString)]
    /// The beginning of the body: at most `bodyLimit` bytes.
    package let body: ByteString

    /// Makes the description of a response; cuts the body to `bodyLimit`.
    package init(
      status: Int, headers: [(name: ByteString, value: ByteString)] = [], body: ByteString = ""
    ) {
      self.status = status
      self.headers = headers
      self.body =
        body.bytes.count > Self.bodyLimit
        ? ByteString(body.bytes.prefix(Self.bodyLimit)) : body
    }
  }

  /// The phases of a request, in this order.
  package enum Phase: String, Sendable, CaseIterable {
    /// Looks up the address of the server's name.
    case resolve
    /// Opens the connection.
    case connect
    /// Agrees on the encryption, and checks certificates.
    case tls
    /// Sends the request.
    case send
    /// Waits for the first byte of the response.
    case wait
    /// Receives the response.
    case receive
  }

  /// Whether a request may be sent again after it may have reached the server: by its method, or
  /// because of a key by which the server recognizes the repetition.
  ///
  /// - Parameters:
  ///   - method: The method, in capitals.
  ///   - hasIdempotencyKey: Whether the request has such a key.
  /// - Returns: Whether it may be sent again.
  package static func mayRepeat(method: ByteString, hasIdempotencyKey: Bool = false) -> Bool {
    hasIdempotencyKey || idempotentMethods.contains(method)
  }

  private static let idempotentMethods: [ByteString] = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"]

  /// The statuses after which another attempt may succeed: the server was busy or unreachable.
  static let transientStatuses: Set<Int> = [408, 425, 429, 500, 502, 503, 504]
}

extension FlowError {
  /// A response whose status is a failure: kind `http`, with the status as `code`.
  ///
  /// Without `when`, a retry policy tries again after the statuses 408, 425, 429, 500, 502, 503 and
  /// 504, if `mayRepeat`.
  ///
  /// - Parameters:
  ///   - message: The description of the failure.
  ///   - response: The response.
  ///   - retryAfter: The least number of seconds before the next attempt, from the response.
  ///   - mayRepeat: See `RequestFailure.mayRepeat(method:hasIdempotencyKey:)`.
  /// - Returns: The error.
  package static func http(
    _ message: ByteString, _ response: RequestFailure.Response, retryAfter: Duration? = nil,
    mayRepeat: Bool
  ) -> FlowError {
    FlowError(.http, message, code: Int64(response.status), retryAfter: retryAfter).with {
      $0.request = .response(response)
      $0.isTransient =
        mayRepeat && RequestFailure.transientStatuses.contains(response.status)
    }
  }

  /// A request without a whole response: kind `network`.
  ///
  /// Without `when`, a retry policy tries again if `mayRepeat`, or if the server can't have received
  /// the request; never after a certificate was refused. An error of kind `timeout` can have the
  /// same details: `FlowError.timeout(seconds:).with { $0.request = …; $0.isTransient = … }`.
  ///
  /// - Parameters:
  ///   - message: The description of the failure.
  ///   - phase: The phase of the request.
  ///   - sent: Whether the server may have received the request.
  ///   - code: The number of the system's error, if there is one.
  ///   - isCertificate: Whether a certificate was refused.
  ///   - mayRepeat: See `RequestFailure.mayRepeat(method:hasIdempotencyKey:)`.
  /// - Returns: The error.
  package static func network(
    _ message: ByteString, phase: RequestFailure.Phase, sent: Bool, code: Int64? = nil,
    isCertificate: Bool = false, mayRepeat: Bool
  ) -> FlowError {
    FlowError(.network, message, code: code).with {
      $0.request = .connection(phase: phase, sent: sent)
      $0.isTransient = !isCertificate && (mayRepeat || !sent)
    }
  }

  /// Makes the error of a request that has taken too long.
  package static func timeout(
    _ message: ByteString, phase: RequestFailure.Phase, sent: Bool, mayRepeat: Bool
  ) -> FlowError {
    FlowError(.timeout, message).with {
      $0.request = .connection(phase: phase, sent: sent)
      $0.isTransient = mayRepeat || !sent
    }
  }
}
