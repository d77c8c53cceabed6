internal import FlowEngine

extension FlowHTTPRequest {
  /// The mistake in the request, if there is one that doesn't need the URL to be read.
  package var misuse: HTTPMisuse? {
    let headSize = headers.reduce(0) { $0 + $1.name.count + $1.value.count + 4 }
    if headSize > Self.headLimit {
      return HTTPMisuse(field: "headers", problem: "at most \(Self.headLimit) bytes expected")
    }
    if let method, !method.isToken {
      return HTTPMisuse(field: "method", problem: "a method is a word of letters, like GET")
    }
    for header in headers {
      guard header.name.isToken else {
        return HTTPMisuse(
          field: "headers", problem: "'\(header.name.escapingControls)' is no name of a header"
        )
      }
      if header.value.hasLineEnd {
        return HTTPMisuse(
          field: "headers",
          problem: "the value of '\(header.name)' has a line end or NUL byte in it")
      }
      if Self.own.contains(header.name.lowercased) {
        return HTTPMisuse(field: "headers", problem: "'\(header.name)' follows from the body")
      }
    }
    if case .bearer(let token)? = authorization, token.hasLineEnd {
      return HTTPMisuse(field: "auth", problem: "the token has a line end or NUL byte in it")
    }
    if case .basic(let user, let password)? = authorization {
      if user.hasLineEnd || password.hasLineEnd || user.bytes.contains(UInt8(ascii: ":")) {
        return HTTPMisuse(
          field: "auth", problem: "a line end, NUL byte or a colon in the user's name")
      }
    }
    if let idempotencyKey, idempotencyKey.hasLineEnd {
      return HTTPMisuse(field: "idempotency_key", problem: "a line end or NUL byte in it")
    }
    if let field = fieldWithNUL {
      return HTTPMisuse(field: field, problem: "a NUL byte in it")
    }
    if let field = fieldWithoutTime {
      return HTTPMisuse(
        field: field, problem: "a time longer than 0 expected")
    }
    if case .parts(let parts)? = body {
      for part in parts { if let misuse = part.misuse { return misuse } }
    }
    if save?.isEmpty == true { return HTTPMisuse(field: "save", problem: "a path expected") }
    if resumes, save == nil {
      return HTTPMisuse(field: "resume", problem: "continues a download to a file: set 'save'")
    }
    if streams, save != nil {
      return HTTPMisuse(field: "stream", problem: "either 'stream' or 'save', not both")
    }
    return nil
  }

  private var fieldWithNUL: ByteString? {
    func hasNUL(_ text: ByteString?) -> Bool { text?.bytes.contains(0) == true }
    if hasNUL(save) { return "save" }
    if hasNUL(ca) { return "ca" }
    if hasNUL(certificate) { return "cert" }
    if hasNUL(key) { return "key" }
    return hasNUL(proxy) ? "proxy" : nil
  }

  private var fieldWithoutTime: ByteString? {
    if let timeout, timeout <= .zero { return "timeout" }
    if connectTimeout <= .zero { return "connect_timeout" }
    return idleTimeout > .zero ? nil : "idle_timeout"
  }

  /// Lines that libcurl makes from the body.
  private static let own: Set<ByteString> = ["content-length", "transfer-encoding"]
}
