internal import CCurl
package import FlowEngine

/// Code that responds to requests instead of servers, for tests. Called on the loop's thread.
package protocol HTTPReplacement: AnyObject {
  /// Why a request must not be sent; nil when it may.
  ///
  /// - Parameters:
  ///   - method: The method.
  ///   - url: The whole URL with its query, without user and password.
  /// - Returns: The reason.
  func problem(with method: ByteString, _ url: ByteString) -> ByteString?
  /// Responds: calls `respond` or `fail` of the request once, now or later.
  func start(_ request: ReplacedRequest)
  /// Stops responding: the request has ended.
  func cancel(_ request: ReplacedRequest, _ error: FlowError)
}

/// A request to which code of a test responds.
package final class ReplacedRequest {
  /// How code of a test ends a request.
  enum End {
    case response(
      status: Int, headers: [(name: ByteString, value: ByteString)], body: ByteString)
    case failure(FlowError)
  }

  /// Takes the end; set until then, or until the request has ended otherwise.
  var onEnd: ((End) -> Void)?
  /// The method, which a redirect may have changed.
  package let method: ByteString
  /// The whole URL with its query, without user and password.
  package let url: ByteString
  /// The request. After a redirect its URL and method don't count.
  package let request: FlowHTTPRequest
  /// The lines of the header that the request's maker has given, with the credentials.
  package let headers: [(name: ByteString, value: ByteString)]
  /// The credentials; a bearer token is in the header, too.
  package let credentials: FlowHTTPRequest.Authorization?
  /// Whether the body of the request is sent.
  package let hasBody: Bool

  init(_ hop: HTTPHop, of request: FlowHTTPRequest) {
    self.request = request
    method = hop.method
    url = hop.url.text
    headers = hop.givenHeaders(request)
    credentials = hop.sentCredentials
    hasBody = hop.hasBody
  }

  /// A method and a URL as `method` and `url` of a request have them, from `GET https://a.example`.
  ///
  /// - Throws: A sentence about the mistake.
  package static func key(_ text: ByteString) throws(HTTPMisuse) -> ByteString {
    let parts = text.bytes.split(separator: 32, omittingEmptySubsequences: false)
      .map { ByteString($0) }
    guard parts.count == 2, parts[0].isToken, parts[0] == parts[0].uppercased else {
      throw HTTPMisuse(
        field: "http", problem: "a method in capitals and a URL expected, such as 'GET https://…'")
    }
    if let problem = ccurl_load() {
      throw HTTPMisuse(field: "http", problem: ByteString(cString: problem))
    }
    return "\(parts[0]) \(try HTTPURL(parts[1]).text)"
  }

  /// Ends the request, or follows a redirect, with a response whose header has no line ends. Does
  /// nothing when the request has ended.
  package func respond(
    status: Int, headers: [(name: ByteString, value: ByteString)], body: ByteString
  ) {
    onEnd.take()?(.response(status: status, headers: headers, body: body))
  }

  /// Ends the request with an error. Does nothing when it has ended.
  package func fail(_ error: FlowError) {
    onEnd.take()?(.failure(error))
  }

  /// The error of a request that breaks in a phase.
  package func failure(in phase: RequestFailure.Phase) -> FlowError {
    .network(
      "\(method) \(HTTPURL.shown(url)) failed \(phase.progress)", phase: phase,
      sent: Self.isSent(in: phase), mayRepeat: request.mayRepeat)
  }

  /// How long nothing may happen in a phase.
  package func patience(in phase: RequestFailure.Phase) -> Duration {
    Self.isSent(in: phase) ? request.idleTimeout : request.connectTimeout
  }

  /// The error of a request for which nothing has happened for `patience(in:)`.
  package func timeout(in phase: RequestFailure.Phase) -> FlowError {
    let isSent = Self.isSent(in: phase)
    let limit = FlowValue.text(of: patience(in: phase))
    let reason: ByteString =
      isSent ? "as no byte moved for \(limit) (idle_timeout)" : "after \(limit) (connect_timeout)"
    return .timeout(
      "\(method) \(HTTPURL.shown(url)) timed out \(reason), \(phase.progress)", phase: phase,
      sent: isSent, mayRepeat: request.mayRepeat)
  }

  private static func isSent(in phase: RequestFailure.Phase) -> Bool {
    [.send, .wait, .receive].contains(phase)
  }
}

/// Holds the replacement of a loop.
final class HTTPReplacementSlot: LoopExtension {
  // Unchecked exclusivity: see HotPath.swift.
  @exclusivity(unchecked) var replacement: (any HTTPReplacement)?

  func loopIsShutDown() { replacement = nil }
}

extension FlowEventLoop {
  private var existingSlot: HTTPReplacementSlot? {
    extensions[ObjectIdentifier(HTTPReplacementSlot.self)] as? HTTPReplacementSlot
  }

  /// The holder of the code that responds; made when first needed.
  var httpReplacementSlot: HTTPReplacementSlot {
    if let existingSlot { return existingSlot }
    let made = HTTPReplacementSlot()
    extensions[ObjectIdentifier(HTTPReplacementSlot.self)] = made
    return made
  }

  /// The code that responds to the requests sent from now on; nil for servers.
  package var httpReplacement: (any HTTPReplacement)? {
    get { existingSlot?.replacement }
    set {
      if newValue == nil, existingSlot == nil { return }
      httpReplacementSlot.replacement = newValue
    }
  }
}
