public import FlowEngine

/// A response. Confined to the thread of its loop.
///
/// ```swift
/// let response = try await FlowHTTPRequest("https://shop.example").start(on: loop).value
/// print(response.status, response.header("content-type") ?? "", response.text ?? "")
/// ```
public final class FlowHTTPResponse {
  /// The status, such as 200.
  public let status: Int
  /// The URL of the response, after redirects; without user and password.
  public let url: ByteString
  /// The lines of the header in order, the names in lower case.
  public private(set) lazy var headers: [(name: ByteString, value: ByteString)] = lines.all
  private let lines: HTTPHeaderLines
  /// The version of the protocol: `1.1`, `2`.
  public var version: ByteString { lines.version }
  /// The body; empty when it was saved to a file, or is streamed.
  public let body: ByteString
  /// The body as a text in UTF-8; nil when it is none.
  public var text: String? { String(validating: body.bytes, as: UTF8.self) }
  /// The path of the file that has the body.
  public let saved: ByteString?
  /// The number of bytes of the body, after decompression.
  package let bodySize: Int64
  /// The time from the start of the request to the end of the response; for a stream, of its
  /// header.
  public let elapsed: Duration
  /// How long the stages of the last request took.
  package let timings: HTTPTimings
  /// The body as it comes, of a request that asked for that.
  package let stream: HTTPStream?
  /// An object that the program keeps with the response to present it.
  package var attachment: AnyObject?

  init(
    status: Int, url: ByteString, lines: HTTPHeaderLines,
    body: ByteString, saved: ByteString?, bodySize: Int64, elapsed: Duration,
    timings: HTTPTimings, stream: HTTPStream?
  ) {
    self.status = status
    self.url = url
    self.lines = lines
    self.body = body
    self.saved = saved
    self.bodySize = bodySize
    self.elapsed = elapsed
    self.timings = timings
    self.stream = stream
  }

  /// Whether the status is a success: 200 to 299.
  public var isSuccess: Bool { (200..<300).contains(status) }

  /// The values of a header, whatever the case of its name, joined by `, `; nil without one.
  public func header(_ name: some FlowText) -> ByteString? {
    Self.header(name.byteString, in: headers)
  }

  static func header(
    _ name: ByteString, in headers: [(name: ByteString, value: ByteString)]
  ) -> ByteString? {
    let wanted = name.lowercased
    let values = headers.filter { $0.name == wanted }.map(\.value.bytes)
    return values.isEmpty ? nil : values.joined(separator: ", ")
  }
}
