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

  /// The exact identity of the content's version: an `If-Range` is compared with it.
  var versionTag: ByteString? {
    if let tag = value("etag") {
      if !tag.hasPrefix("W/") { return tag }
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

/// The lines of a response's header, kept as they have come: most programs ask for few of them, or none.
struct HTTPHeaderLines {
  private static let lineEnd = UInt8(ascii: "\n")

  private static let statusMark = "HTTP/".bytes
  private static let usualVersion: ByteString = "1.1"

  /// The status line, then the others, with their ends.
  private var text: [UInt8] = []
  /// The number of bytes of the status line.
  private var start = 0

  init() {}

  /// The lines that follow a status line, such as `HTTP/1.1 200 OK`.
  init(statusLine: UnsafeRawBufferPointer) {
    append(statusLine)
    start = text.count
  }

  /// Whether a line is the first one of a response.
  static func isStatus(_ line: UnsafeRawBufferPointer) -> Bool { line.starts(with: statusMark) }

  /// Adds a line, with its end.
  mutating func append(_ line: UnsafeRawBufferPointer) {
    // Most headers have fewer bytes.
    if text.isEmpty { text.reserveCapacity(512) }
    text.append(contentsOf: line)
    if line.last != Self.lineEnd { text.append(Self.lineEnd) }
  }

  /// The status; 0 when it is no number.
  var status: Int { Int(clamping: statusWord(1).decimal ?? 0) }

  /// The version of the protocol.
  var version: ByteString {
    let version = statusWord(0).dropFirst(Self.statusMark.count)
    return version.elementsEqual(Self.usualVersion.bytes)
      ? Self.usualVersion : ByteString(version)
  }

  /// The words after the status.
  var reason: ByteString {
    let words = statusWord(2, andRest: true)
    return words.isEmpty ? "" : ByteString(words).escapingControls.truncated(to: 80)
  }

  /// A word of the status line, or all from there on.
  private func statusWord(_ index: Int, andRest: Bool = false) -> ArraySlice<UInt8> {
    let space = UInt8(ascii: " ")
    var rest = text[..<start].trimmed()
    for _ in 0..<index { rest = rest.drop { $0 != space }.drop { $0 == space } }
    return andRest ? rest : rest.prefix { $0 != space }
  }

  /// The names, in lower case, and the values in order.
  var all: [(name: ByteString, value: ByteString)] {
    var all: [(name: ByteString, value: ByteString)] = []
    forEach { name, value in
      if let name {
        all.append((ByteString(name).lowercased, ByteString(value)))
      } else if let last = all.popLast() {
        all.append((last.name, last.value + " " + ByteString(value)))
      }
    }
    return all
  }

  /// The value of the last line with a name, which is in lower case.
  func last(_ name: StaticString) -> ByteString? {
    var found: ByteString?
    var isOfName = false
    forEach { other, value in
      if let other {
        isOfName = Self.isName(other, name)
        if isOfName { found = ByteString(value) }
      } else if isOfName, let start = found {
        found = start + " " + ByteString(value)
      }
    }
    return found
  }

  /// The values of the lines with a name, which is in lower case, joined by commas, if they aren't all the same.
  func different(_ name: StaticString) -> ByteString? {
    var first: ArraySlice<UInt8>?
    var differ = false
    forEach { other, value in
      guard let other, Self.isName(other, name) else { return }
      if let first, !first.elementsEqual(value) { differ = true }
      first = first ?? value
    }
    guard differ else { return nil }
    let values = all.filter { $0.name.equals(name) }.map(\.value.bytes)
    return values.joined(separator: ", ").truncated(to: 80)
  }

  private static func isName(_ name: ArraySlice<UInt8>, _ wanted: StaticString) -> Bool {
    guard name.count == wanted.utf8CodeUnitCount else { return false }
    return wanted.withUTF8Buffer { wanted in
      zip(name, wanted).allSatisfy { $0.lowercased == $1 }
    }
  }

  /// Calls `body` with each line. A line without a name continues the value of the one before: an old
  /// form, which some servers still send.
  private func forEach(_ body: (_ name: ArraySlice<UInt8>?, _ value: ArraySlice<UInt8>) -> Void) {
    var rest = text[start...]
    while let end = rest.firstIndex(of: Self.lineEnd) {
      let line = rest[..<end]
      rest = rest[(end + 1)...]
      if line.first == UInt8(ascii: " ") || line.first == UInt8(ascii: "\t") {
        let value = line.trimmed()
        if !value.isEmpty { body(nil, value) }
      } else if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
        body(line[..<colon].trimmed(), line[(colon + 1)...].trimmed())
      }
    }
  }
}
