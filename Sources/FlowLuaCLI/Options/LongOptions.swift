internal import FlowEngine
internal import FlowScripting

/// The options of flowlua. They come before the script, among those of the interpreter. A value is
/// the next word or follows `=`.
struct LongOptions {
  enum SummaryForm: String, CaseIterable { case text, json }

  /// A file for the summaries.
  struct SummaryFile {
    let path: ByteString
    let form: SummaryForm
  }

  /// Whether output has colours.
  enum Color: String, CaseIterable {
    /// On a terminal, unless `NO_COLOR` is set.
    case auto
    case always, never
  }

  /// The form of the times in summaries.
  enum Time: String, CaseIterable { case clock, iso }

  /// How the progress of runs is shown.
  enum Progress: String, CaseIterable {
    /// As a tree on a terminal.
    case auto
    /// As lines.
    case plain
    case never
  }

  /// A file for the graph, whose suffix selects the format.
  struct GraphFile {
    enum Form: String, CaseIterable { case dot, mmd, svg }
    let path: ByteString
    let form: Form
  }

  var showsHelp = false
  var showsVersion = false
  /// The form of the summaries on stderr; nil: no summaries.
  var summary: SummaryForm?
  var summaryFile: SummaryFile?
  var graph: GraphFile?
  /// The file for events; `-` is stdout.
  var events: ByteString?
  /// Whether the lines of the summaries are printed as they happen.
  var follows = false
  /// The form of the times in summaries.
  var time = Time.clock
  var color = Color.auto
  /// The file for the report in Markdown.
  var report: ByteString?
  /// The file for the trace.
  var trace: ByteString?
  /// Where the spans of the runs are written; nil: nowhere.
  var otlp: SpanExport?
  /// The file for the page with the timeline.
  var timeline: ByteString?
  var usesVirtualClock = false
  /// The number of workers; nil: one per core.
  var workers: Int?
  /// Whether flows are checked instead of executed.
  var checks = false
  /// Whether findings of the check are lines of JSON.
  var printsJSON = false
  /// Whether completions of the script's commands are printed instead of executing it.
  var completes = false
  /// The grace of cleanups in seconds; nil: the default.
  var grace: Double?
  var progress = Progress.auto
  /// The options about kept runs. Made by the first option about them: fields of these many types would cost each
  /// start.
  var kept: KeepingOptions?
  /// The options about other nodes; nil without one.
  var remote: RemoteOptions?
  /// The limits and permissions of the script; nil without any.
  var confinement: ConfinementOptions?
  /// The options of tests; nil without `--test`, and without an option that belongs to it.
  var tests: TestOptions?
  /// The folder for the annotations, if they are to be written and nothing else is to be done.
  var annotations: ByteString?
  /// The folder of `--init`.
  var project: ByteString?
  /// The first option that has an effect only if a script is executed here.
  var scriptOption: ByteString?

  /// The options about kept runs, to add further ones.
  var about: KeepingOptions { mutating get { made(\.kept, KeepingOptions()) } }

  /// The options about other nodes, to add further ones.
  var nodes: RemoteOptions { mutating get { made(\.remote, RemoteOptions()) } }

  /// The options of tests, so that more can be said.
  var testing: TestOptions { mutating get { made(\.tests, TestOptions()) } }

  /// Limits and permissions, so that more can be said.
  var limits: ConfinementOptions { mutating get { made(\.confinement, ConfinementOptions()) } }

  private mutating func made<Options>(
    _ options: WritableKeyPath<Self, Options?>, _ make: @autoclosure () -> Options
  ) -> Options {
    if let given = self[keyPath: options] { return given }
    let made = make()
    self[keyPath: options] = made
    return made
  }

  /// The files that are written when the script ends, with their options.
  var writtenAtEnd: [(option: ByteString, path: ByteString)] {
    var files: [(ByteString, ByteString?)] = [
      ("--report", report), ("--timeline", timeline), ("--trace", trace), ("--graph", graph?.path),
      ("--summary", summaryFile?.path),
    ]
    if case .file(let path)? = otlp { files.append(("--otlp", path)) }
    return files.compactMap { option, path in
      path.flatMap { $0 == "-" ? nil : (option, $0) }
    }
  }

  /// Refuses to write over a script: its name follows an option easily whose file was forgotten. Also refuses files
  /// that can't be written, and one for two options: at the end of the script it would be too late.
  func checkWritten() throws(CommandLineArguments.Misuse) {
    var files = writtenAtEnd
    if let events, events != "-" { files.append(("--events", events)) }
    if let page = kept?.stored.page { files.append(("--html", page)) }
    var known: [ByteString: ByteString] = [:]
    for (option, path) in files {
      if let place = TextFile.place(of: path), let other = known.updateValue(option, forKey: place)
      {
        throw Self.misuse("options '\(other)' and '\(option)' write the same file '\(path)'")
      }
      if TextFile.isScript(path) {
        throw Self.misuse(
          "option '\(option)' would write over the script '\(path)': the file to write comes before it"
        )
      }
      let isReplaced = option != "--events" && option != "--graph"
      if let reason = TextFile.obstacle(to: path, isReplaced: isReplaced) {
        throw Self.misuse("option '\(option)' can't write '\(path)': \(reason)")
      }
    }
  }

  /// Parses an option; returns the number of its words.
  mutating func parse(
    _ word: ByteString, next: ByteString?
  ) throws(CommandLineArguments.Misuse) -> Int {
    let parts = word.split(at: "=", maxSplits: 1)
    let written = ByteString(parts[0])
    let value = parts.count > 1 ? ByteString(parts[1]) : nil
    guard let option = Option.named(written) else { throw Self.misuse(Self.unknown(written)) }
    if option.concernsScript, scriptOption == nil { scriptOption = written }
    switch option.value {
    case .none:
      if value != nil { throw Self.misuse("option '\(written)' takes no value") }
      try option.take(&self, written, nil)
      return 1
    case .word(let need, let mayBeStdout):
      guard let given = value ?? next,
        value != nil || given.bytes.first != UInt8(ascii: "-") || given == "-" && mayBeStdout,
        !given.bytes.isEmpty
      else { throw Self.misuse("option '\(written)' needs \(need)") }
      try option.take(&self, written, given)
      return value == nil ? 2 : 1
    case .optional(let isValue):
      let taken = value == nil ? next.flatMap { isValue($0) ? $0 : nil } : nil
      try option.take(&self, written, value ?? taken)
      return taken == nil ? 1 : 2
    }
  }

  /// Whether the word after `--otlp` is its value, not the script or another option. A script may have any name, but
  /// hardly one of these.
  static func isTarget(_ word: ByteString) -> Bool {
    if word == "-" { return true }
    guard word.bytes.first != UInt8(ascii: "-") else { return false }
    return word.contains("://")
      || [".json", ".jsonl", ".ndjson"].contains { word.hasSuffix($0) }
  }

  /// Parses `text`, `json`, `text:FILE` or `json:FILE`.
  mutating func parseSummary(
    _ value: ByteString
  ) throws(CommandLineArguments.Misuse) {
    let parts = value.split(at: ":", maxSplits: 1)
    for form in SummaryForm.allCases where parts[0].elementsEqual(form.rawValue.utf8) {
      if parts.count == 1 {
        summary = form
      } else if parts[1].isEmpty {
        throw Self.misuse("option '--summary' needs a file: --summary=\(form.rawValue):FILE")
      } else {
        summaryFile = SummaryFile(path: ByteString(parts[1]), form: form)
      }
      return
    }
    throw Self.misuse(
      "option '--summary' takes 'text' or 'json', not '\(value)', and a file after that: json:FILE")
  }

  /// Parses `PayOp=done`.
  mutating func settle(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    guard let sign = text.bytes.lastIndex(of: UInt8(ascii: "=")), sign > 0,
      case let verdict = ByteString(text.bytes[(sign + 1)...]),
      ["done", "again", "fail"].contains(verdict)
    else {
      throw Self.misuse(
        "option '--settle' takes an op and 'done', 'again' or 'fail', such as 'PayOp=done', not '\(text)'"
      )
    }
    about.settlements[ByteString(text.bytes[..<sign])] = verdict
  }

  static func misuse(_ message: ByteString) -> CommandLineArguments.Misuse {
    CommandLineArguments.Misuse(message: message, status: 2, showsUsage: false)
  }

  private static func unknown(_ word: ByteString) -> ByteString {
    let text = word.description
    let nearest = Option.all.map(\.name.description).min { distance($0, text) < distance($1, text) }
    return "unrecognized option '\(word)' (did you mean '\(nearest ?? "--help")'?)"
  }

  /// The number of letters that must change to turn one word into another, without the dashes.
  private static func distance(_ name: String, _ word: String) -> Int {
    // The user chooses the length.
    let right = Array(word.utf8.drop { $0 == UInt8(ascii: "-") }.prefix(40))
    let name = name.utf8.drop { $0 == UInt8(ascii: "-") }
    var row = Array(0...right.count)
    for (i, a) in name.enumerated() {
      var diagonal = row[0]
      row[0] = i + 1
      for (j, b) in right.enumerated() {
        let above = row[j + 1]
        row[j + 1] = min(diagonal + (a == b ? 0 : 1), above + 1, row[j] + 1)
        diagonal = above
      }
    }
    return row[right.count]
  }
}

/// Values of single options.
extension LongOptions {
  /// One of the words that an option takes.
  static func choice<Choice: RawRepresentable & CaseIterable>(
    _ text: ByteString, of option: ByteString
  ) throws(CommandLineArguments.Misuse) -> Choice where Choice.RawValue == String {
    if let choice = Choice(rawValue: text.description) { return choice }
    let words = Choice.allCases.map { "'\($0.rawValue)'" }
    let listed = words.dropLast().joined(separator: ", ") + " or " + (words.last ?? "")
    throw misuse("option '\(option)' takes \(listed), not '\(text)'")
  }

  static func graphFile(
    _ path: ByteString
  ) throws(CommandLineArguments.Misuse) -> GraphFile {
    for form in GraphFile.Form.allCases
    where path.bytes.count > form.rawValue.utf8.count + 1
      && path.hasSuffix(".\(form.rawValue)")
    {
      return GraphFile(path: path, form: form)
    }
    throw misuse("option '--graph' needs a file that ends in .dot, .mmd or .svg, not '\(path)'")
  }

  /// A decimal number without a sign; nil for another text.
  static func decimal(_ text: ByteString) -> Double? {
    let isPlain = text.bytes.allSatisfy {
      $0.isDigit || $0 == UInt8(ascii: ".")
    }
    return isPlain ? Double(text.description) : nil
  }

  /// A whole number without a sign; nil for another text, and for one that is too large.
  static func whole(_ text: ByteString) -> Int? {
    text.bytes.allSatisfy(\.isDigit)
      ? Int(text.description) : nil
  }

  static func number(_ text: ByteString) throws(CommandLineArguments.Misuse) -> Int {
    guard let number = whole(text), (1...1024).contains(number) else {
      throw misuse("option '--workers' needs a number from 1 to 1024, not '\(text)'")
    }
    return number
  }

  /// A number of things to do.
  static func count(
    _ text: ByteString, of option: ByteString
  ) throws(CommandLineArguments.Misuse) -> Int {
    guard let number = whole(text), (1...100_000).contains(number) else {
      throw misuse("option '\(option)' needs a number from 1 to 100000, not '\(text)'")
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
