internal import FlowEngine

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
  /// Decodes what comes.
  var decoder: HTTPDecoder?
  /// Counts `bytes`, of a loop with a meter.
  var held: HeldBytes?
  /// The number of bytes that have come.
  var size: Int64 = 0
  /// What a file that is continued gets.
  var range: ContentRange?
  /// The number of bytes of the request's body that were sent.
  var sent: Int64 = 0
  /// Whether the rest of an unwanted body wasn't waited for.
  var isCut = false

  /// Adds bytes that are kept in memory; returns whether there is room for them.
  mutating func append(_ more: UnsafeRawBufferPointer, _ meter: (any MemoryMeter)?) -> Bool {
    bytes.append(contentsOf: more)
    guard let meter else { return true }
    let held = held ?? HeldBytes(meter)
    self.held = held
    return held.set(bytes.capacity) == nil
  }

  /// Forgets the bytes.
  mutating func drop() {
    bytes = []
    held = nil
    decoder = nil
  }
}
