internal import FlowEngine

/// `Retry-After`: a number of seconds, or a date.
enum RetryAfter {
  /// More is no sensible wait; policies cap it further.
  static let limit = 86_400.0

  /// The seconds that the value of a header asks to wait, at `now` in seconds since 1970; nil for
  /// nonsense.
  static func seconds(_ text: ByteString, now: Int64) -> Double? {
    let text = text.trimmed
    if !text.isEmpty, text.bytes.allSatisfy({ (48...57).contains($0) }) {
      return min(Double(text.decimal ?? .max), limit)
    }
    guard let date = HTTPDate.seconds(text) else { return nil }
    return min(max(0, Double(date - now)), limit)
  }
}

/// Dates of headers: `Sun, 06 Nov 1994 08:49:37 GMT`, and the two older forms of RFC 9110.
enum HTTPDate {
  /// Seconds since 1970; nil for another text.
  static func seconds(_ text: ByteString) -> Int64? {
    let separators = Set(" ,:-".utf8)
    let words = text.bytes.split { separators.contains($0) }.map { ByteString($0) }
    // Sun 06 Nov 1994 08 49 37 GMT, Sunday 06 Nov 94 08 49 37 GMT, Sun Nov 6 08 49 37 1994
    let order: [Int]
    switch words.count {
    case 8 where words[7] == "GMT": order = [1, 2, 3, 4, 5, 6]
    case 7: order = [2, 1, 6, 3, 4, 5]
    default: return nil
    }
    guard let month = months.firstIndex(of: words[order[1]]), let day = words[order[0]].decimal,
      var year = words[order[2]].decimal, let hour = words[order[3]].decimal,
      let minute = words[order[4]].decimal, let second = words[order[5]].decimal,
      (1...31).contains(day), (0...9999).contains(year), hour < 24, minute < 60, second < 61
    else { return nil }
    if words[order[2]].count == 2 { year += year < 70 ? 2000 : 1900 }
    guard year >= 1970 else { return nil }
    return days(year, Int64(month) + 1, day) * 86_400 + hour * 3600 + minute * 60 + second
  }

  private static let months: [ByteString] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// The days from 1970 to a date of the Gregorian calendar; a year is counted from March on, so
  /// that its leap day is the last one.
  private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
  }
}
