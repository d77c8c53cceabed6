internal import CCurl
internal import FlowEngine
internal import FlowSystem

/// One request of a transfer: the first, or one that a redirect has led to.
struct HTTPHop {
  private(set) var url: HTTPURL
  private(set) var method: ByteString
  private(set) var hasBody: Bool
  /// Whether the server is of the origin that the request was made for: it gets the secrets.
  private(set) var isTrusted = true
  private var credentials: FlowHTTPRequest.Authorization?
  private let secrets: SecretTexts
  /// The size of the body, if it is known.
  private(set) var bodySize: Int64 = 0
  /// The part of the file that is there already.
  var part: (size: Int64, tag: ByteString)?
  /// Whether the download begins with the first byte, whatever is there.
  var restarts = false

  /// The first request.
  init(_ request: FlowHTTPRequest, hiding secrets: SecretTexts) throws(HTTPMisuse) {
    self.secrets = secrets
    // As browsers do: the path and the query may have spaces and letters of any alphabet.
    url = try HTTPURL(request.fullURL, encoding: true)
    let size = request.headers.reduce(url.text.count) {
      $0 + $1.name.count + $1.value.count + 4
    }
    if size > FlowHTTPRequest.headLimit {
      throw HTTPMisuse(
        field: "url",
        problem:
          "at most \(FlowHTTPRequest.headLimit) bytes of URL and header expected, got \(size)")
    }
    method = request.effectiveMethod
    hasBody = request.body != nil
    credentials = request.authorization
    if credentials == nil, let user = url.user {
      credentials = .basic(user: user, password: url.password ?? "")
    }
  }

  /// Whether a redirect of this status turns the request into a GET.
  func becomesGet(by status: Int) -> Bool {
    status == 303 && !method.equals("HEAD")
      || (status == 301 || status == 302) && method.equals("POST")
  }

  /// Follows the redirect of a response to a place, which may be relative. Some statuses change the method, as
  /// browsers do.
  mutating func follow(_ location: ByteString, status: Int) throws(HTTPMisuse) {
    let next = try HTTPURL(location, relativeTo: url, encoding: true)
    // Once gone elsewhere, the other server decides about the way back: it gets nothing either.
    if !next.hasOrigin(of: url) { isTrusted = false }
    if becomesGet(by: status) {
      method = "GET"
      hasBody = false
    }
    url = next
    bodySize = 0
  }

  /// Opens a body that is a file.
  mutating func openBody(_ request: FlowHTTPRequest) throws(FlowError) -> HTTPUpload? {
    switch request.body {
    case .file(let path, let first, let size):
      let upload = try HTTPUpload(path, from: first, size: size)
      bodySize = upload.size
      return upload
    case .parts(let parts):
      for case .file(let path) in parts.map(\.content) {
        if let problem = HTTPUpload.problem(path) { throw problem }
      }
    case .bytes(let bytes, _): bodySize = Int64(bytes.count)
    case nil: break
    }
    return nil
  }

  /// Sets the options of the library; false without memory.
  func setOptions(
    of easy: OpaquePointer, for request: FlowHTTPRequest, upload: HTTPUpload?,
    environment: HTTPEnvironment
  ) -> Bool {
    let options = CurlOptions(easy)
    options.set(CURLOPT_URL, url.text)
    options.set(
      CURLOPT_CONNECTTIMEOUT_MS,
      max(1, Int(min(request.connectTimeout.clampedNanoseconds / 1_000_000, 1_000_000_000))))
    if url.isEncrypted { options.set(CURLOPT_PIPEWAIT, 1) }
    switch request.version {
    case .http1: options.set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
    case .http2:
      let version =
        url.isEncrypted ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
      options.set(CURLOPT_HTTP_VERSION, version)
    // HTTP/2 where the server offers it with its encryption.
    case nil: break
    }
    if request.save != nil { options.set(CURLOPT_BUFFERSIZE, 1 << 18) }
    let isPlainGet = !hasBody && method.equals("GET")
    if !isPlainGet || request.onProgress != nil { ccurl_follow_body(easy) }
    if !isPlainGet { setMethod(options, request, upload) }
    setTrust(options, request)
    let mayUseProxy = setProxy(options, request, environment)
    if !mayUseProxy, isPlainGet, hasNoLines(request) {
      options.setUsualLines()
    } else {
      addHeaders(options, request)
    }
    if isTrusted {
      switch credentials {
      case .basic(let user, let password):
        options.set(CURLOPT_USERNAME, user)
        options.set(CURLOPT_PASSWORD, password)
      case .bearer(let token): options.add("Authorization", "Bearer " + token)
      case nil: break
      }
    }
    if let jar = request.cookies {
      guard let handle = jar.handle else { return false }
      options.succeeds = options.succeeds && ccurl_set_jar(easy, handle) == CURLE_OK
    }
    return options.succeeds
  }

  /// The credentials that the server gets.
  var sentCredentials: FlowHTTPRequest.Authorization? { isTrusted ? credentials : nil }

  /// The lines of the header that the program has given.
  func givenHeaders(_ request: FlowHTTPRequest) -> [(name: ByteString, value: ByteString)] {
    let given = request.headers.filter { gives($0, of: request) }
    var lines = given.map { (name: $0.name, value: $0.value) }
    if case .bearer(let token)? = sentCredentials {
      lines.append(("Authorization", "Bearer " + token))
    }
    if hasBody, case .bytes(_, let type?)? = request.body,
      !lines.contains(where: { $0.name.lowercased == "content-type" })
    {
      lines.append(("Content-Type", type))
    }
    if let key = request.idempotencyKey, gives(idempotencyKey: key) {
      lines.append(("Idempotency-Key", key))
    }
    return lines
  }

  /// Whether the program itself has asked for encodings: it gets the body as it comes.
  func asksForEncodings(_ request: FlowHTTPRequest) -> Bool {
    request.headers.contains {
      $0.name.lowercased.equals("accept-encoding") && gives($0, of: request)
    }
  }

  /// GET without a body is the library's own method, and may be repeated.
  private func setMethod(_ options: CurlOptions, _ request: FlowHTTPRequest, _ upload: HTTPUpload?)
  {
    // On a kept connection that ends, the library would send such a request again; a body that it
    // can't have again keeps it from that.
    if !request.mayRepeat, !hasBody || request.isMultipart || bodySize == 0 {
      options.set(CURLOPT_FRESH_CONNECT, 1)
    }
    if hasBody {
      switch request.body {
      case .bytes(let bytes, _):
        if request.mayRepeat || bytes.isEmpty {
          options.set(body: bytes)
        } else {
          // Asked for by `fill`, which the library can't do again.
          options.set(CURLOPT_POST, 1)
          options.set(size: CURLOPT_POSTFIELDSIZE_LARGE, Int64(bytes.count))
        }
      case .parts(let parts): for part in parts { options.add(part) }
      case .file:
        options.set(CURLOPT_UPLOAD, 1)
        options.set(CURLOPT_UPLOAD_BUFFERSIZE, 1 << 18)
        options.set(size: CURLOPT_INFILESIZE_LARGE, upload?.size ?? 0)
      case nil: break
      }
      options.set(CURLOPT_CUSTOMREQUEST, method)
    } else if method.equals("HEAD") {
      options.set(CURLOPT_NOBODY, 1)
    } else {
      if method.equals("POST") || method.equals("PUT") || method.equals("PATCH") {
        // An empty body has a length of 0, which servers ask for.
        options.set(body: "")
      }
      options.set(CURLOPT_CUSTOMREQUEST, method)
    }
  }

  private func setTrust(_ options: CurlOptions, _ request: FlowHTTPRequest) {
    if request.isInsecure {
      options.set(CURLOPT_SSL_VERIFYPEER, 0)
      options.set(CURLOPT_SSL_VERIFYHOST, 0)
    }
    if url.isEncrypted, let ca = request.ca ?? environment("SSL_CERT_FILE") {
      options.set(CURLOPT_CAINFO, ca)
    }
    guard isTrusted else { return }
    if let certificate = request.certificate { options.set(CURLOPT_SSLCERT, certificate) }
    if let key = request.key { options.set(CURLOPT_SSLKEY, key) }
  }

  /// Returns whether the request may go through a proxy.
  private func setProxy(
    _ options: CurlOptions, _ request: FlowHTTPRequest, _ environment: HTTPEnvironment
  ) -> Bool {
    if let proxy = request.proxy {
      options.set(CURLOPT_PROXY, proxy)
      // This proxy was asked for, whatever NO_PROXY says.
      if !proxy.isEmpty { options.set(CURLOPT_NOPROXY, "") }
    } else if !environment.namesProxies {
      // The library would look for them with each request.
      options.set(CURLOPT_NOPROXY, literal: "*")
      return false
    } else if !url.isEncrypted, let proxy = environment.proxy {
      // The library doesn't read it, because of CGI programs: their clients can set it.
      options.set(CURLOPT_PROXY, proxy)
    }
    options.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    return true
  }

  /// Whether the header of a GET has no line but those of every request.
  private func hasNoLines(_ request: FlowHTTPRequest) -> Bool {
    if case .bearer? = sentCredentials { return false }
    return request.headers.isEmpty && request.idempotencyKey == nil && !request.resumes
  }

  private func addHeaders(_ options: CurlOptions, _ request: FlowHTTPRequest) {
    let names = request.headers.map(\.name.lowercased)
    func lacks(_ name: StaticString) -> Bool { !names.contains { $0.equals(name) } }
    var cookies: [ByteString] = []
    for header in request.headers {
      let name = header.name.lowercased
      if !gives(header, of: request) { continue }
      if !hasBody, name.hasPrefix("content-"), request.body != nil { continue }
      // The library joins them with those of a jar to one line.
      if name.equals("cookie") {
        cookies.append(header.value)
      } else {
        options.add(header.name, header.value)
      }
    }
    if !cookies.isEmpty {
      options.set(CURLOPT_COOKIE, cookies.dropFirst().reduce(cookies[0]) { $0 + "; " + $1 })
    }
    if lacks("user-agent") { options.setAgent() }
    // A part of a compressed content can't be continued.
    if lacks("accept-encoding") {
      if request.resumes {
        options.add("Accept-Encoding", "identity")
      } else {
        options.askForEncodings()
      }
    }
    if hasBody, lacks("content-type") {
      if case .bytes(_, let type)? = request.body {
        if let type { options.add("Content-Type", type) } else { options.remove("Content-Type") }
      }
    } else if !hasBody, !method.equals("GET"), !method.equals("HEAD"), lacks("content-type") {
      options.remove("Content-Type")
    }
    // A server that doesn't know it would cost a second.
    if hasBody, lacks("expect") { options.remove("Expect") }
    if let key = request.idempotencyKey, lacks("idempotency-key"), gives(idempotencyKey: key) {
      options.add("Idempotency-Key", key)
    }
    if let part {
      options.add("Range", "bytes=\(part.size)-")
      options.add("If-Range", part.tag)
    }
  }

  /// Whether the server gets a line of the header that the program has given. Credentials count before a line of
  /// their own.
  private func gives(_ header: HTTPHeader, of request: FlowHTTPRequest) -> Bool {
    if request.authorization != nil, header.name.lowercased.equals("authorization") {
      return false
    }
    return isTrusted || !header.isForOneServer(hiding: secrets)
  }

  private func gives(idempotencyKey: ByteString) -> Bool {
    isTrusted || !secrets.occur(inSent: idempotencyKey)
  }

  /// Whether the body has a secret that the server may not get.
  func hidesBody(of request: FlowHTTPRequest) -> Bool {
    guard !isTrusted, hasBody else { return false }
    switch request.body {
    case .bytes(let bytes, _): return secrets.occur(inSent: bytes)
    case .parts(let parts):
      return parts.contains {
        if case .bytes(let bytes) = $0.content, secrets.occur(inSent: bytes) { return true }
        return [$0.name, $0.fileName].contains { secrets.occur(inSent: $0 ?? "") }
      }
    case .file, nil: return false
    }
  }

  /// Whether a header of this name, in lower case, is for one server only.
  fileprivate static func isPrivate(_ name: ByteString) -> Bool {
    name == "authorization" || name == "cookie" || name == "host"
      || name.hasPrefix("proxy-")
  }
}

extension HTTPHeader {
  /// Whether the line is for one server only: by its name, or because it is a secret or has the text of one in it.
  func isForOneServer(hiding secrets: SecretTexts) -> Bool {
    isSecret || HTTPHop.isPrivate(name.lowercased) || secrets.occur(inSent: name)
      || secrets.occur(inSent: value)
  }
}

/// The options of one transfer of the library.
private final class CurlOptions {
  private let easy: OpaquePointer
  /// Whether there was memory for all of them. An option that the library doesn't know, in an
  /// older version, doesn't count.
  var succeeds = true

  init(_ easy: OpaquePointer) {
    self.easy = easy
  }

  private func check(_ code: CURLcode) {
    if code == CURLE_OUT_OF_MEMORY { succeeds = false }
  }

  func set(_ option: CURLoption, _ text: ByteString) {
    check(text.withUnsafeBytes { ccurl_set_text(easy, option, $0.baseAddress, $0.count) })
  }

  func set(_ option: CURLoption, literal text: StaticString) {
    check(ccurl_set_text(easy, option, text.utf8Start, text.utf8CodeUnitCount))
  }

  func setAgent() { check(ccurl_set_agent(easy)) }

  func askForEncodings() { if !ccurl_ask_for_encodings(easy) { succeeds = false } }

  func setUsualLines() { check(ccurl_set_usual_lines(easy)) }

  func set(_ option: CURLoption, _ number: Int) { check(ccurl_set_number(easy, option, number)) }

  func set(size option: CURLoption, _ size: Int64) { check(ccurl_set_size(easy, option, size)) }

  func set(body: ByteString) {
    check(body.withUnsafeBytes { ccurl_set_body(easy, $0.baseAddress, $0.count) })
  }

  func add(_ name: ByteString, _ value: ByteString) {
    // The library's form for an empty value.
    add(line: value.isEmpty ? name + ";" : "\(name): \(value)")
  }

  /// Leaves out a line that the library adds otherwise.
  func remove(_ name: ByteString) { add(line: name + ":") }

  private func add(line: ByteString) {
    if line.withCString({ ccurl_add_header(easy, $0) }) != true { succeeds = false }
  }

  func add(_ part: HTTPPart) {
    var path: ByteString?
    var bytes: ByteString = ""
    switch part.content {
    case .file(let file):
      // The library would take the size for the length.
      if let content = HTTPUpload.uncounted(file) { bytes = content } else { path = file }
    case .bytes(let content): bytes = content
    }
    var fileName = part.fileName
    if path == nil, fileName == nil, case .file(let file) = part.content {
      fileName = file.fileName
    }
    let added = part.name.withCString { name in
      Self.lend(path) { path in
        Self.lend(part.type) { type in
          Self.lend(fileName) { fileName in
            bytes.withUnsafeBytes {
              ccurl_add_part(easy, name, path, $0.baseAddress, $0.count, type, fileName)
            }
          }
        }
      }
    }
    if added != true { succeeds = false }
  }

  private static func lend<Result>(
    _ text: ByteString?, _ body: (UnsafePointer<CChar>?) -> Result
  ) -> Result {
    guard let text else { return body(nil) }
    return text.withCString(body) ?? body(nil)
  }
}
