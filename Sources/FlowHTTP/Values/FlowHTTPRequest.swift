public import FlowEngine

/// A line of a header.
///
/// ```swift
/// var request = FlowHTTPRequest("https://shop.example/items")
/// request.headers = [HTTPHeader("X-Id", "7"), HTTPHeader("X-Token", "t0p", isSecret: true)]
/// ```
public struct HTTPHeader: Sendable {
  /// The name, as given.
  package var name: ByteString
  /// The value.
  package var value: ByteString
  /// Whether the value is sent to no other origin, when a response redirects there.
  package var isSecret: Bool

  /// Makes a line of a header.
  public init(_ name: some FlowText, _ value: some FlowText, isSecret: Bool = false) {
    self.name = name.byteString
    self.value = value.byteString
    self.isSecret = isSecret
  }
}

/// A part of a multipart body.
///
/// ```swift
/// var request = FlowHTTPRequest("https://shop.example/photos")
/// request.body = .parts([HTTPPart("photo", .file("cat.png"), type: "image/png")])
/// ```
public struct HTTPPart: Sendable {
  /// The content of a part.
  public enum Content: Sendable {
    /// These bytes.
    case bytes(ByteString)
    /// A regular file, which is read while it is sent.
    case file(ByteString)
  }

  /// The name of the form's field.
  package var name: ByteString
  /// The content.
  package var content: Content
  /// The media type; nil for one that fits.
  package var type: ByteString?
  /// The file name that the server gets; nil for the file's own, or none for bytes.
  package var fileName: ByteString?

  /// Makes a part.
  public init(
    _ name: some FlowText, _ content: Content, type: (any FlowText)? = nil,
    fileName: (any FlowText)? = nil
  ) {
    self.name = name.byteString
    self.content = content
    self.type = type?.byteString
    self.fileName = fileName?.byteString
  }

  /// The mistake in the part, if there is one.
  var misuse: HTTPMisuse? {
    var isFile = fileName != nil
    if case .file(let path) = content {
      isFile = true
      if path.bytes.contains(0) {
        return HTTPMisuse(field: "files", problem: "a NUL byte in a path")
      }
    }
    let shown = name.escapingControls
    if name.bytes.contains(0) {
      return HTTPMisuse(
        field: isFile ? "files" : "form", problem: "'\(shown)': a NUL byte in the name")
    }
    for text in [type, fileName] where text?.hasLineEnd == true {
      return HTTPMisuse(field: "files", problem: "'\(shown)': a line end or NUL byte in it")
    }
    return nil
  }
}

/// An HTTP request: a value, which can be sent many times.
///
/// ```swift
/// var request = FlowHTTPRequest("https://shop.example/items", method: "POST")
/// request.body = .text("tea", type: "text/plain")
/// request.timeout = .seconds(10)
/// ```
public struct FlowHTTPRequest {
  /// The body of a request.
  public enum Body: Sendable {
    /// These bytes, of a media type.
    case bytes(ByteString, type: ByteString?)
    /// A multipart form.
    case parts([HTTPPart])
    /// The content of a regular file, read while it is sent: from a byte on, which is 0 for the first one, and so many
    /// bytes; nil for all that follow.
    case file(ByteString, from: Int64 = 0, size: Int64? = nil)

    /// A text in UTF-8, of a media type.
    public static func text(
      _ text: some FlowText, type: ByteString? = "text/plain; charset=utf-8"
    ) -> Body {
      .bytes(text.byteString, type: type)
    }
  }

  /// The credentials of a request.
  ///
  /// ```swift
  /// var request = FlowHTTPRequest("https://shop.example/items")
  /// request.authorization = .basic(user: "ada", password: "123456")
  /// ```
  public enum Authorization: Sendable {
    /// A bearer token.
    case bearer(ByteString)
    /// A user and a password.
    case basic(user: ByteString, password: ByteString)
  }

  /// A version of the protocol.
  ///
  /// ```swift
  /// var request = FlowHTTPRequest("https://shop.example/items")
  /// request.version = .http2
  /// ```
  public enum Version: Sendable {
    /// HTTP/1.1.
    case http1
    /// HTTP/2; with `http:` URLs without asking first.
    case http2
  }

  /// The URL, with `http:` or `https:`.
  public var url: ByteString
  /// The method; nil for GET, or POST when there is a body.
  public var method: ByteString?
  /// The addition to the query of the URL: names and values, which are encoded.
  public var query: [(name: ByteString, value: ByteString)] {
    get { further?.fields.query ?? [] }
    set { change { $0.query = newValue } }
  }
  /// The header, besides the lines that every request has.
  public var headers: [HTTPHeader] {
    get { further?.fields.headers ?? [] }
    set { change { $0.headers = newValue } }
  }
  /// The body.
  public var body: Body? {
    get { further?.fields.body }
    set { change { $0.body = newValue } }
  }
  /// The credentials.
  public var authorization: Authorization? {
    get { further?.fields.authorization }
    set { change { $0.authorization = newValue } }
  }
  /// The most time for everything, from the connection on; nil for no limit.
  public var timeout: Duration?
  /// The most time until there is a connection.
  public var connectTimeout = Duration.seconds(10)
  /// The most time in which no byte moves, once there is a connection.
  public var idleTimeout = Duration.seconds(60)
  /// Whether a status from 400 on is a failure.
  package var isChecked = true
  /// The path of the file that gets the body of a success; nil to keep it in memory.
  public var save: ByteString? {
    get { further?.fields.save }
    set { change { $0.save = newValue } }
  }
  /// Whether an interrupted download to that file continues.
  public var resumes = false
  /// The most bytes of a body, after decompression; nil for 64 MiB in memory, and no limit for
  /// files and streams.
  public var maxBytes: Int?
  /// The most redirects that are followed.
  public var redirects = 10
  /// Whether a redirect that turns the request into a GET is a failure instead, as it would lose the body.
  package var keepsMethod = false
  /// The proxy, empty for none; nil for the environment's.
  public var proxy: ByteString? {
    get { further?.fields.proxy }
    set { change { $0.proxy = newValue } }
  }
  /// A file with the certificates that are trusted; nil for the system's.
  public var ca: ByteString? {
    get { further?.fields.ca }
    set { change { $0.ca = newValue } }
  }
  /// A file with the client's certificate.
  public var certificate: ByteString? {
    get { further?.fields.certificate }
    set { change { $0.certificate = newValue } }
  }
  /// A file with the key of that certificate.
  package var key: ByteString? {
    get { further?.fields.key }
    set { change { $0.key = newValue } }
  }
  /// Whether the certificate of the server isn't checked.
  public var isInsecure = false
  /// The cookies that are sent, and get those of the responses.
  public var cookies: HTTPCookieJar? {
    get { further?.fields.cookies }
    set { change { $0.cookies = newValue } }
  }
  /// The version of the protocol; nil to agree on one.
  public var version: Version?
  /// The value of the header `Idempotency-Key`, with which a request can be repeated safely.
  public var idempotencyKey: ByteString? {
    get { further?.fields.idempotencyKey }
    set { change { $0.idempotencyKey = newValue } }
  }
  /// Whether the response comes as soon as its header is there; see `FlowHTTPResponse.stream`.
  package var streams = false
  /// Called now and then with the number of bytes of the body that have moved, and the total if it
  /// is known.
  public var onProgress: ((_ done: Int64, _ total: Int64?) -> Void)? {
    get { further?.fields.onProgress }
    set { change { $0.onProgress = newValue } }
  }

  /// The fields that most requests don't have, in one object: a request is copied several times on its
  /// way, and each copy would retain them all.
  private var further: Further?

  private final class Further {
    var fields: Fields
    init(_ fields: Fields) { self.fields = fields }
  }

  private struct Fields {
    var query: [(name: ByteString, value: ByteString)] = []
    var headers: [HTTPHeader] = []
    var body: Body?
    var authorization: Authorization?
    var save: ByteString?
    var proxy: ByteString?
    var ca: ByteString?
    var certificate: ByteString?
    var key: ByteString?
    var cookies: HTTPCookieJar?
    var idempotencyKey: ByteString?
    var onProgress: ((_ done: Int64, _ total: Int64?) -> Void)?
  }

  private mutating func change(_ body: (inout Fields) -> Void) {
    if !isKnownUniquelyReferenced(&further) { further = Further(further?.fields ?? Fields()) }
    if let further { body(&further.fields) }
  }

  /// The most bytes of a body in memory, unless a request has a limit of its own.
  package static let memoryLimit = 64 << 20

  /// Makes a request.
  ///
  /// - Parameters:
  ///   - url: The URL, with `http:` or `https:`.
  ///   - method: The method; nil for GET, or POST when there is a body.
  public init(_ url: some FlowText, method: (any FlowText)? = nil) {
    self.url = url.byteString
    self.method = method?.byteString
  }

  /// The method that is sent first.
  package var effectiveMethod: ByteString { method ?? (body == nil ? Self.get : Self.post) }

  // A literal makes an array each time.
  private static let get: ByteString = "GET"
  private static let post: ByteString = "POST"

  /// Whether the request can be sent twice without doing more than once.
  package var mayRepeat: Bool {
    RequestFailure.mayRepeat(
      method: effectiveMethod, hasIdempotencyKey: idempotencyKey != nil)
  }

  /// The most bytes of a URL and header, for which libcurl has a mebibyte.
  static let headLimit = 1_000_000

  /// Whether the body is a multipart form.
  var isMultipart: Bool {
    if case .parts? = body { true } else { false }
  }

  /// The URL with the query.
  var fullURL: ByteString {
    guard !query.isEmpty else { return url }
    let pairs = query.map {
      "\($0.name.percentEncoded)=\($0.value.percentEncoded)" as ByteString
    }
    let added = pairs.dropFirst().reduce(pairs[0]) { $0 + "&" + $1 }
    let base = ByteString(url.bytes.prefix { $0 != UInt8(ascii: "#") })
    guard base.bytes.contains(UInt8(ascii: "?")) else { return base + "?" + added }
    let isOpen = base.bytes.last == UInt8(ascii: "?") || base.bytes.last == UInt8(ascii: "&")
    return base + (isOpen ? "" : "&") + added
  }
}

extension ByteString {
  private static let tokenMarks = "!#$%&'*+-.^_`|~".bytes

  /// Whether the text is a word as methods and names of headers are (RFC 9110, section 5.6.2).
  var isToken: Bool {
    !isEmpty
      && bytes.allSatisfy {
        $0.isLetter || $0.isDigit || Self.tokenMarks.contains($0)
      }
  }

  /// Whether a byte of the text would end a line of a header, or the text.
  package var hasLineEnd: Bool { bytes.contains { $0 == 0 || $0 == 10 || $0 == 13 } }

  /// The text with `?` instead of control characters.
  var escapingControls: ByteString {
    ByteString(bytes.map { $0 < 32 || $0 == 127 ? UInt8(ascii: "?") : $0 })
  }
}

extension FlowHTTPRequest {
  /// The request with the headers of a trace, unless it has a `traceparent`: with the span at `place`, else with
  /// the one that the trace continues.
  func continuing(_ trace: TraceContext, at place: WorkPlace?) -> FlowHTTPRequest {
    guard let traceparent = place?.traceparent ?? trace.traceparent,
      !headers.contains(where: { $0.name.lowercased == "traceparent" })
    else { return self }
    var request = self
    request.headers.append(HTTPHeader("traceparent", traceparent))
    if let state = trace.state,
      !headers.contains(where: { $0.name.lowercased == "tracestate" })
    {
      request.headers.append(HTTPHeader("tracestate", state))
    }
    return request
  }
}
