internal import CCurl
public import FlowEngine
@_spi(Scripting) internal import FlowLoop

/// The settings that the requests to a service have in common, and limits for them. Confined to the thread of its
/// loop.
///
/// ```swift
/// let shop = FlowHTTPClient(
///   base: "https://shop.example/v1", authorization: .bearer("token"), rate: RateLimit(10))
/// ```
public final class FlowHTTPClient {
  /// The URL that paths are relative to.
  package let base: ByteString?
  /// Lines for the header of each request; those of a request take precedence.
  package let headers: [HTTPHeader]
  /// The credentials of requests that have none.
  package let authorization: FlowHTTPRequest.Authorization?
  /// The cookies of all requests; nil for none.
  package let cookies: HTTPCookieJar?
  /// The most requests at a time; nil for no limit of its own.
  package let maxConnections: Int?
  /// How often requests start; nil for no limit.
  package let rate: RateLimit?
  private let limit: Int
  private var limiter: RateLimiter?
  private var running = 0
  private var waiting = FIFO<HTTPTransfer>()
  private var timer: LoopTimer?
  private var isStarting = false

  /// Makes a client.
  ///
  /// - Parameters:
  ///   - base: The URL that paths are relative to; nil when requests have whole URLs.
  ///   - headers: Lines for the header of each request.
  ///   - authorization: The credentials of requests that have none.
  ///   - cookies: The cookies of all requests.
  ///   - maxConnections: The most requests at a time; nil for no limit of its own.
  ///   - rate: How often requests start; nil for no limit.
  public init(
    base: (any FlowText)? = nil, headers: [HTTPHeader] = [],
    authorization: FlowHTTPRequest.Authorization? = nil, cookies: HTTPCookieJar? = nil,
    maxConnections: Int? = nil, rate: RateLimit? = nil
  ) {
    self.base = base?.byteString
    self.headers = headers
    self.authorization = authorization
    self.cookies = cookies
    self.maxConnections = maxConnections
    self.rate = rate
    limit = maxConnections ?? .max
    limiter = rate.map { RateLimiter($0) }
  }

  /// A request with what the client adds to it. A whole URL of another origin than the base gets
  /// neither the credentials of the client nor its secret lines. It gets no lines for one server only,
  /// such as `Authorization` and `Cookie`.
  package func completing(
    _ request: FlowHTTPRequest, hiding secrets: SecretTexts
  ) -> FlowHTTPRequest {
    var request = request
    let isOwn = isOwn(request.url)
    if let base, !request.url.isWholeURL {
      request.url = Self.join(base, request.url)
    }
    var names = Set(request.headers.map(\.name.lowercased))
    if request.authorization != nil { names.insert("authorization") }
    request.headers += headers.filter {
      !names.contains($0.name.lowercased)
        && (isOwn || !$0.isForOneServer(hiding: secrets))
    }
    if isOwn, !names.contains("authorization") { request.authorization = authorization }
    if request.cookies == nil { request.cookies = cookies }
    return request
  }

  /// Whether a URL is relative to the base or of its origin; always, without a base.
  package func isOwn(_ url: ByteString) -> Bool {
    guard let base, url.isWholeURL else { return true }
    return Self.haveOneOrigin(url, base)
  }

  private static func haveOneOrigin(_ one: ByteString, _ other: ByteString) -> Bool {
    // The library reads URLs, and this may be the first use of it.
    guard ccurl_load() == nil, let one = try? HTTPURL(one), let other = try? HTTPURL(other) else {
      return false
    }
    return one.hasOrigin(of: other)
  }

  /// `https://a/v1?key=1` and `items` or `/items?n=2`: `https://a/v1/items?key=1&n=2`.
  private static func join(_ base: ByteString, _ path: ByteString) -> ByteString {
    let slash = UInt8(ascii: "/")
    let mark = UInt8(ascii: "?")
    if path.isEmpty { return base }
    let whole = base.bytes.prefix { $0 != UInt8(ascii: "#") }
    var start = whole.prefix { $0 != mark }
    let rest = path.bytes.prefix { $0 != mark }
    if !rest.isEmpty {
      while start.last == slash { start.removeLast() }
      start += [slash] + rest.drop { $0 == slash }
    }
    let queries = [whole.drop { $0 != mark }, path.bytes.drop { $0 != mark }].map { $0.dropFirst() }
      .filter { !$0.isEmpty }
    if !queries.isEmpty { start += [mark] + queries.joined(separator: [UInt8(ascii: "&")]) }
    return ByteString(start)
  }

  // MARK: Limits

  /// Starts a transfer, or lets it wait.
  func start(_ transfer: HTTPTransfer) {
    transfer.multi.noteWaiting(transfer)
    waiting.append(transfer)
    transfer.onLeave = { [unowned self] in waitingEnded() }
    startWaiting(transfer.multi.loop)
  }

  /// Nothing else needs the time of the next start when nobody waits any more.
  private func waitingEnded() {
    while waiting.first?.hasEnded == true { waiting.removeFirst(1) }
    guard waiting.isEmpty else { return }
    timer?.cancel()
    timer = nil
  }

  private func startWaiting(_ loop: FlowEventLoop) {
    guard !isStarting else { return }
    isStarting = true
    defer { isStarting = false }
    while running < limit, let transfer = waiting.first {
      if !transfer.hasEnded, !takeStart(loop) { return }
      waiting.removeFirst(1)
      if transfer.hasEnded { continue }
      running += 1
      transfer.onLeave = { [self] in
        running -= 1
        startWaiting(loop)
      }
      transfer.multi.start(transfer)
    }
  }

  /// Whether the rate allows another start; otherwise the next one is scheduled. Real time counts:
  /// the server has no virtual clock.
  private func takeStart(_ loop: FlowEventLoop) -> Bool {
    let now = HTTPTransfer.now
    guard limiter != nil, limiter?.startIfAllowed(at: now) == false else { return true }
    guard timer == nil, let time = limiter?.nextStart(at: now) else { return false }
    timer = loop.scheduleOutside(after: .nanoseconds(time - now)) {
      [weak self, unowned loop] in
      guard let self else { return }
      timer = nil
      startWaiting(loop)
    }
    return false
  }
}

extension ByteString {
  /// Whether it begins with `http://`, or another scheme.
  var isWholeURL: Bool {
    guard let colon = bytes.place(of: "://") else { return false }
    return bytes[..<colon.lowerBound].allSatisfy {
      $0.isDigit || $0.isLetter
        || "+-.".bytes.contains($0)
    }
  }
}
