internal import FlowEngine

/// Values of single options.
extension LongOptions {
  /// One of the words that an option takes.
  static func choice<Choice: RawRepresentable & CaseIterable>(
    _ text: ByteString, of option: ByteString
  ) throws(CommandLineArguments.Misuse) -> Choice where Choice.RawValue == String {
    if let choice = Choice(rawValue: text.description) { return choice }
    let words = Choice.allCases.map { "'\($0.rawValue)'" }
    let listed = words.dropLast().joined(separator: ", ") + " or " + (words.last ?? "")
    throw misuse("option '\(option)' takes \(ByteString(listed)), not '\(text)'")
  }

  static func graphFile(
    _ path: ByteString
  ) throws(CommandLineArguments.Misuse) -> GraphFile {
    for form in GraphFile.Form.allCases
    where path.bytes.count > form.rawValue.utf8.count + 1
      && path.bytes.suffix(form.rawValue.utf8.count + 1).elementsEqual(".\(form.rawValue)".utf8)
    {
      return GraphFile(path: path, form: form)
    }
    throw misuse("option '--graph' needs a file that ends in .dot, .mmd or .svg, not '\(path)'")
  }

  /// A decimal number without a sign; nil for another text.
  static func decimal(_ text: ByteString) -> Double? {
    let isPlain = text.bytes.allSatisfy {
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: ".")
    }
    return isPlain ? Double(text.description) : nil
  }

  /// A whole number without a sign; nil for another text, and for one that is too large.
  static func whole(_ text: ByteString) -> Int? {
    text.bytes.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
      ? Int(text.description) : nil
  }

  static func number(_ text: ByteString) throws(CommandLineArguments.Misuse) -> Int {
    guard let number = whole(text), (1...1024).contains(number) else {
      throw misuse("option '--workers' needs a number from 1 to 1024, not '\(text)'")
    }
    return number
  }

  /// Seconds as a decimal number, or `inf`.
  static func seconds(_ text: ByteString) throws(CommandLineArguments.Misuse) -> Double {
    if text == "inf" { return .infinity }
    guard let seconds = decimal(text) else {
      throw misuse(
        "option '--grace' needs a number of seconds of at least 0, or 'inf', not '\(text)'")
    }
    return seconds
  }
}
