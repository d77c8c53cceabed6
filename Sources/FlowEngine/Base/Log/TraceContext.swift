/// A place in a distributed trace, in the terms of W3C's Trace Context: the span that runs continue, or an op's for
/// what it starts. See `FlowEventLoop.trace`, `Op.start` and `OpContext.traceContext`.
///
/// ```swift
/// let header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
/// let trace = TraceContext(traceparent: header)
/// let run = op.start(on: loop, trace: trace)
/// ```
public struct TraceContext: Sendable {
  /// The id of the trace, its first and last 8 bytes; never 0.
  package let high: UInt64
  package let low: UInt64
  /// The span of another program that the runs continue; 0 for none.
  package let parent: UInt64
  /// Whether the program that began the trace records its spans; true for a trace that begins here.
  package let isSampled: Bool
  /// The addition of other systems to the trace: the header or environment variable `tracestate`.
  public let state: ByteString?

  /// Begins a trace, with a random id.
  public init() {
    high = .random(in: 1 ... .max)
    low = .random(in: 0 ... .max)
    parent = 0
    isSampled = true
    state = nil
  }

  /// Continues the trace of another program.
  ///
  /// - Parameters:
  ///   - traceparent: The header or environment variable `traceparent`. By the rules of W3C, nil is returned
  ///     for an invalid one; later versions are read as far as they are known.
  ///   - state: The header or environment variable `tracestate`; ignored unless it is printable ASCII.
  public init?(traceparent: some FlowText, state: (any FlowText)? = nil) {
    let state = state?.byteString
    let parts = traceparent.byteString.split(at: "-", maxSplits: 4)
    guard parts.count >= 4, parts.map(\.count).prefix(4) == [2, 32, 16, 2],
      let version = UInt64(hexadecimal: parts[0]), version != 0xFF,
      version != 0 || parts.count == 4,
      let high = UInt64(hexadecimal: parts[1].prefix(16)),
      let low = UInt64(hexadecimal: parts[1].suffix(16)), high | low != 0,
      let parent = UInt64(hexadecimal: parts[2]), parent != 0,
      let flags = UInt64(hexadecimal: parts[3])
    else { return nil }
    self.high = high
    self.low = low
    self.parent = parent
    isSampled = flags & 1 == 1
    let isKept = state.map {
      !$0.bytes.isEmpty && $0.bytes.count <= 512
        && $0.bytes.allSatisfy { (0x20...0x7E).contains($0) }
    }
    self.state = isKept == true ? state : nil
  }

  /// A trace that another process has described.
  init(high: UInt64, low: UInt64, parent: UInt64, isSampled: Bool, state: ByteString?) {
    self.high = high
    self.low = low
    self.parent = parent
    self.isSampled = isSampled
    self.state = state
  }

  /// The id of the trace: 32 hexadecimal digits.
  package var id: ByteString { high.hexadecimal + low.hexadecimal }

  /// The trace, continued at a span.
  package init(_ trace: TraceContext, at span: UInt64) {
    high = trace.high
    low = trace.low
    parent = span
    isSampled = trace.isSampled
    state = trace.state
  }

  /// The `traceparent` of what a span starts.
  package func traceparent(of span: UInt64) -> ByteString {
    "00-\(id)-\(span.hexadecimal)-\(isSampled ? "01" : "00")"
  }

  /// The header or environment variable `traceparent`, with the span that is continued; nil for a trace that
  /// begins here.
  public var traceparent: ByteString? { parent == 0 ? nil : traceparent(of: parent) }
}

/// Ids of spans. They are computed, so that a program gets its op's before there are spans.
package enum SpanID {
  /// The id of an execution, by the id of its run and its `id` in the events there.
  package static func execution(run: ByteString, id: UInt64) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in run.bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return nonZero((hash ^ id.spread).spread)
  }

  /// The id of the part with this number of a span: an attempt, a program, a request.
  package static func part(_ number: UInt64, of span: UInt64) -> UInt64 {
    nonZero((span ^ (number &+ 1).spread).spread)
  }

  private static func nonZero(_ id: UInt64) -> UInt64 { id == 0 ? 1 : id }
}

/// The trace of one run, when it isn't its loop's.
package final class SpanOrigin: Sendable {
  /// Where the spans of a run are that executes a part of another loop's run.
  package enum Place: Sendable {
    /// The run is a single execution there, with this span.
    case execution(UInt64)
    /// Its items are those of a group there: the id of that run, and the scope of the items.
    case items(run: ByteString, scope: UInt32)
  }

  package let trace: TraceContext
  /// nil for a run with spans of its own.
  package let place: Place?

  package init(_ trace: TraceContext, place: Place? = nil) {
    self.trace = trace
    self.place = place
  }
}

extension UInt64 {
  /// Reads up to 16 hexadecimal digits in lower case; nil for anything else.
  package init?(hexadecimal digits: ArraySlice<UInt8>) {
    guard (1...16).contains(digits.count) else { return nil }
    var number: UInt64 = 0
    for digit in digits {
      switch digit {
      case 48...57: number = number << 4 | UInt64(digit - 48)
      case 97...102: number = number << 4 | UInt64(digit - 87)
      default: return nil
      }
    }
    self = number
  }

  /// 16 hexadecimal digits.
  package var hexadecimal: ByteString { hexadecimal(digits: 16) }

  /// Hexadecimal digits without leading zeros.
  package var shortHexadecimal: ByteString {
    hexadecimal(digits: Swift.max(1, (67 - leadingZeroBitCount) / 4))
  }

  private func hexadecimal(digits count: Int) -> ByteString {
    ByteString(
      [UInt8](unsafeUninitializedCapacity: count) { digits, initialized in
        for place in 0..<count {
          let digit = UInt8(truncatingIfNeeded: self >> UInt64(4 * (count - 1 - place))) & 15
          digits[place] = digit + (digit < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10)
        }
        initialized = count
      })
  }
}
