internal import FlowEngine

/// The line that shows the progress of an op or group:
/// `[signup] UploadOp 37/120 ████▌ 31% 3 running, 0 failed, 12s left`.
struct ProgressText {
  /// The maximum number of columns of the line.
  var columns: Int
  /// Whether the terminal shows UTF-8.
  var isUTF8: Bool

  /// The number of cells of a full bar.
  private static let cells = 15.0

  /// - Parameters:
  ///   - progress: The progress to show.
  ///   - seconds: The time since its start.
  ///   - others: The number of other running ops.
  /// - Returns: The line, without its end.
  func text(_ progress: Progress, after seconds: Double, others: Int) -> ByteString {
    var before = ["[\(progress.run)] \(progress.op)", amount(progress)]
    var after: [String] = []
    var bar = ""
    if let share = share(of: progress) {
      bar = self.bar(share)
      after.append("\(whole(share * 100))%")
    }
    var notes: [String] = []
    if let items = progress.items {
      notes = ["\(items.running) running", "\(items.failed) failed"]
    }
    if let left = remaining(progress, after: seconds) { notes.append("\(duration(left)) left") }
    if others > 0 { notes.append("\(others) more") }
    if !notes.isEmpty { after.append(notes.joined(separator: ", ")) }
    if !bar.isEmpty {
      let line = (before + [bar] + after).joined(separator: " ")
      if let whole = fit(line, cutting: false) { return whole }
    }
    before += after
    return fit(before.joined(separator: " "), cutting: true) ?? ""
  }

  private func amount(_ progress: Progress) -> String {
    let done = number(progress.done)
    return progress.total.map { "\(done)/\(number($0))" } ?? done
  }

  /// Any script chooses these numbers.
  private func number(_ value: Double) -> String {
    if let integer = Int(exactly: value) { return "\(integer)" }
    return value.isFinite
      ? Value.number((value * 100).rounded() / 100).logText.description : "\(value)"
  }

  /// The part that is done, from 0 to 1; nil if it isn't known.
  private func share(of progress: Progress) -> Double? {
    guard let total = progress.total, total > 0, total.isFinite, progress.done.isFinite else {
      return nil
    }
    return min(max(progress.done / total, 0), 1)
  }

  private func whole(_ value: Double) -> Int { Int(exactly: value.rounded()) ?? 0 }

  private func bar(_ share: Double) -> String {
    let halves = whole((share * Self.cells * 2).rounded(.down))
    guard isUTF8 else { return String(repeating: "#", count: max(halves, 0) / 2) }
    return String(repeating: "█", count: max(halves, 0) / 2)
      + (halves > 0 && halves % 2 == 1 ? "▌" : "")
  }

  /// The estimated seconds for the rest; nil while an estimate would be a mere guess.
  private func remaining(_ progress: Progress, after seconds: Double) -> Double? {
    guard let share = share(of: progress), share > 0, share < 1, seconds >= 1 else { return nil }
    return seconds / share * (1 - share)
  }

  private func duration(_ seconds: Double) -> String {
    guard seconds < 360_000, let all = Int(exactly: seconds.rounded(.up)) else { return ">99h" }
    if all < 60 { return "\(all)s" }
    if all < 3600 { return "\(all / 60)m \(all % 60)s" }
    return "\(all / 3600)h \(all / 60 % 60)m"
  }

  /// Removes characters that would move the cursor, and cuts a line to the width, between words
  /// where possible; nil if it doesn't fit and must not be cut.
  private func fit(_ line: String, cutting: Bool) -> ByteString? {
    var shown = String.UnicodeScalarView()
    var width = 0
    var lastWord: String.UnicodeScalarView.Index?
    for scalar in line.unicodeScalars {
      let isControl = scalar.properties.generalCategory == .control
      let columnsOfIt = isControl ? 1 : Self.width(of: scalar)
      // The last column stays empty: some terminals move to the next line there.
      guard width + columnsOfIt < columns else {
        guard cutting else { return nil }
        if let lastWord, scalar != " " { shown.removeSubrange(lastWord...) }
        break
      }
      width += columnsOfIt
      if scalar == " " { lastWord = shown.endIndex }
      shown.append(isControl || !isUTF8 && !scalar.isASCII ? "?" : scalar)
    }
    return ByteString(String(shown))
  }

  /// The number of columns of a character.
  private static func width(of scalar: Unicode.Scalar) -> Int {
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: break
    }
    // East Asian wide characters and most emoji.
    switch scalar.value {
    case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
      0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
      return 2
    default: return 1
    }
  }
}
