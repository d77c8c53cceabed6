/// The body of a response, as far as it is kept.
struct HTTPBodyBuffer {
  /// What becomes of a body.
  enum Kind {
    case memory, file, stream
    /// The start is kept for an error.
    case excerpt
    case ignored
  }

  /// The most bytes of a body that nobody wants; a connection isn't worth more.
  static let patience: Int64 = 1 << 20

  var kind = Kind.memory
  var bytes: [UInt8] = []
  /// The number of bytes that have come.
  var size: Int64 = 0
  /// What a file that is continued gets.
  var range: ContentRange?
  /// The number of bytes of the request's body that were sent.
  var sent: Int64 = 0
  /// Whether the rest of an unwanted body wasn't waited for.
  var isCut = false
}
