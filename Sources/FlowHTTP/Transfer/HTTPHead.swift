internal import CCurl
internal import FlowEngine

/// The header of a response, as it comes.
struct HTTPHead {
  /// The most bytes of a header.
  static let limit = 1 << 20

  private(set) var status = 0
  private(set) var lines = HTTPHeaderLines()
  /// Whether the header of the final response has ended.
  private(set) var isComplete = false
  /// Whether nobody has handled that yet.
  var isFresh = true
  private(set) var timings = HTTPTimings()
  /// Whether the request was sent, at least in part.
  private(set) var wasSent = false
  private var size = 0

  /// Adds a line; returns false when there are too many.
  mutating func add(_ line: UnsafeRawBufferPointer) -> Bool {
    size += line.count
    guard size <= Self.limit else { return false }
    // Lines after the body.
    if isComplete { return true }
    // Like the library: a line that begins with a space or a tab continues the one before, even if it
    // has nothing else, or looks like a status line.
    let first = line.first
    if first == nil || first == UInt8(ascii: "\r") || first == UInt8(ascii: "\n") {
      // 1xx: another header follows.
      isComplete = status >= 200
    } else if HTTPHeaderLines.isStatus(line) {
      lines = HTTPHeaderLines(statusLine: line)
      status = lines.status
    } else {
      lines.append(line)
    }
    return true
  }

  /// The words after the status.
  var reason: ByteString { lines.reason }

  private func value(_ name: StaticString) -> ByteString? { lines.last(name) }

  /// Where the response redirects to; nil when it doesn't.
  var redirect: ByteString? {
    switch status {
    case 301, 302, 303, 307, 308: value("location")
    default: nil
    }
  }

  /// The encodings of the body, in the order in which they were applied; nil without any.
  var encodings: ByteString? { value("content-encoding") }

  /// The mistake because of which nobody knows where the body ends.
  var problem: ByteString? {
    guard let lengths = lines.different("content-length") else { return nil }
    return "the header has several lengths of the body: \(lengths)"
  }

  /// The range of the content that the response has.
  var range: ContentRange? { value("content-range").flatMap { ContentRange($0) } }

  /// What identifies the version of the content exactly: an `If-Range` is compared with it.
  var versionTag: ByteString? {
    if let tag = value("etag") {
      if !tag.bytes.starts(with: "W/".utf8) { return tag }
      return nil
    }
    return value("last-modified")
  }

  /// Whether the content can be of a version that `versionTag` of an earlier response was: whether the
  /// header names that version, or none. There are servers that don't know `If-Range`.
  func canBe(of version: ByteString) -> Bool {
    let tag = value("etag")
    let isTag = version.bytes.first == UInt8(ascii: "\"")
    let named = (isTag ? [tag] : [tag, value("last-modified")]).compactMap { $0 }
    return named.isEmpty || named.contains(version)
  }

  /// Reads the times of a transfer that has ended.
  mutating func readTimes(_ easy: OpaquePointer) {
    wasSent = HTTPPhases.wasSent(easy)
    func time(_ info: CURLINFO) -> Duration { .microseconds(ccurl_size(easy, info)) }
    let resolved = time(CURLINFO_NAMELOOKUP_TIME_T)
    let connected = max(resolved, time(CURLINFO_CONNECT_TIME_T))
    let encrypted = max(connected, time(CURLINFO_APPCONNECT_TIME_T))
    let first = max(encrypted, time(CURLINFO_STARTTRANSFER_TIME_T))
    timings = HTTPTimings(
      resolve: resolved, connect: connected - resolved, tls: encrypted - connected,
      wait: first - encrypted, receive: max(.zero, time(CURLINFO_TOTAL_TIME_T) - first))
  }
}

/// The stages of a request, as the library tells them.
enum HTTPPhases {
  /// Failures that another attempt can't mend: certificates, and options of the request.
  static let lasting: Set<UInt32> = Set(
    [
      CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE,
      CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_PINNEDPUBKEYNOTMATCH,
      CURLE_SSL_CRL_BADFILE, CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL,
      CURLE_BAD_FUNCTION_ARGUMENT, CURLE_SSL_CIPHER,
    ].map(\.rawValue))

  /// Whether the server may have received a part of the request.
  static func wasSent(_ easy: OpaquePointer) -> Bool {
    ccurl_size(easy, CURLINFO_PRETRANSFER_TIME_T) > 0
      && ccurl_number(easy, CURLINFO_REQUEST_SIZE) > 0
  }

  /// The stage in which a transfer is, or has failed with a code.
  static func phase(
    _ easy: OpaquePointer, _ code: CURLcode, hasHead: Bool, isTLS: Bool, bodySize: Int64
  ) -> RequestFailure.Phase {
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: return .resolve
    case CURLE_COULDNT_CONNECT: return .connect
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR:
      return .tls
    default: break
    }
    if hasHead { return .receive }
    if ccurl_size(easy, CURLINFO_PRETRANSFER_TIME_T) > 0 {
      guard wasSent(easy), ccurl_size(easy, CURLINFO_SIZE_UPLOAD_T) >= bodySize else {
        return .send
      }
      return .wait
    }
    // The library sets its time of the connection after the encryption, but the port before it.
    if ccurl_number(easy, CURLINFO_LOCAL_PORT) > 0 { return isTLS ? .tls : .connect }
    return ccurl_size(easy, CURLINFO_NAMELOOKUP_TIME_T) > 0 ? .connect : .resolve
  }
}

extension RequestFailure.Phase {
  /// The stage as the end of a sentence.
  var progress: ByteString {
    switch self {
    case .resolve: "while looking up the name"
    case .connect: "while connecting"
    case .tls: "while agreeing on the encryption"
    case .send: "while sending the request"
    case .wait: "while waiting for the response"
    case .receive: "while receiving the response"
    }
  }
}
