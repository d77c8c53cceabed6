/// The outcome of a test script.
struct ScriptResult {
  let status: Int32
  /// Its standard output, times masked.
  let output: String
  let errors: String
}

/// The expectations in the header of a test script about its run; `Tests/scripts/README.md` has the form.
struct ScriptExpectation: Equatable {
  var status: Int32 = 0
  var arguments: [String] = []
  /// Why the script needs the clock of the machine; `nil`: it runs on a virtual clock.
  var reasonForRealClock: String?
  /// The Python modules without which the script is skipped.
  var pythonModules: [String] = []
  /// The whole standard output, times masked; `nil`: whatever it prints.
  var standardOutput: String?
  /// The parts that standard error contains; none: it is empty.
  var standardErrorParts: [String] = []

  /// Reads the comment lines at the top of a script.
  ///
  /// - Parameter source: The text of the script.
  /// - Throws: `UnknownDirective`, so that a misspelt one doesn't make a test weaker.
  init(source: String) throws {
    var outputLines: [String]?
    for line in source.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("#!") { continue }
      guard line.hasPrefix("--") else { break }
      if line.hasPrefix("--|"), outputLines != nil {
        outputLines?.append(String(line.dropFirst(line.hasPrefix("--| ") ? 4 : 3)))
      } else if let value = Self.value(of: "expect-status", in: line), let status = Int32(value) {
        self.status = status
      } else if let value = Self.value(of: "expect-stderr", in: line), !value.isEmpty {
        standardErrorParts.append(value)
      } else if Self.value(of: "expect-stdout", in: line) == "" {
        outputLines = []
      } else if let value = Self.value(of: "args", in: line) {
        arguments = value.split(separator: " ").map(String.init)
      } else if let reason = Self.value(of: "clock: real", in: line), !reason.isEmpty {
        reasonForRealClock = reason
      } else if let module = Self.value(of: "python", in: line), !module.isEmpty {
        pythonModules.append(module)
      } else if line.hasPrefix("-- expect-") || line.hasPrefix("-- args")
        || line.hasPrefix("-- clock") || line.hasPrefix("-- python") || line.hasPrefix("--|")
      {
        throw UnknownDirective(line: String(line))
      }
    }
    standardOutput = outputLines.map { $0.map { $0 + "\n" }.joined() }
  }

  /// The options of flowlua, which stand before the script.
  var options: [String] { reasonForRealClock == nil ? ["--virtual-clock"] : [] }

  struct UnknownDirective: Error, Equatable {
    let line: String
  }

  private static func value(of name: String, in line: Substring) -> String? {
    let prefix = "-- \(name):"
    guard line.hasPrefix(prefix) else { return nil }
    return String(line.dropFirst(prefix.count).drop { $0 == " " })
  }
}
