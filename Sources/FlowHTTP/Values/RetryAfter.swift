internal import CCurl
internal import FlowEngine

/// `Retry-After`: a number of seconds, or a date.
enum RetryAfter {
  /// More is no sensible wait; policies cap it further.
  static let limit = 86_400.0

  /// The seconds that the value of a header asks to wait, at `now` in seconds since 1970; nil for
  /// nonsense.
  static func seconds(_ text: ByteString, now: Int64) -> Double? {
    let text = ByteString(text.trimmed())
    if !text.isEmpty, text.bytes.allSatisfy(\.isDigit) {
      return min(Double(text.decimal ?? .max), limit)
    }
    let date = text.withCString { ccurl_date($0) } ?? -1
    return date < 0 ? nil : min(max(0, Double(date - now)), limit)
  }
}
