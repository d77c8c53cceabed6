internal import FlowEngine
internal import FlowSystem

/// The parsed command line. Words are bytes: a file name needn't be UTF-8.
///
/// A class, because a copy of so many fields would need their types at run time: 4 % of the start-up.
final class CommandLineArguments {
  /// The error of a malformed command line, with the exit status for it.
  struct Misuse: Error {
    let message: ByteString
    let status: Int32
    let showsUsage: Bool
  }

  /// The actions before the script, in the order of the words.
  enum Preparation {
    /// `-e`
    case execute(ByteString)
    /// `-l`: a module, and the global variable for it.
    case require(module: ByteString, global: ByteString)
    /// `-W`
    case warnings
  }

  /// The source of the script.
  enum Script {
    case file(ByteString)
    case standardInput
    /// `--test`: the files of `options.tests`.
    case tests
  }

  private(set) var preparations: [Preparation] = []
  /// nil: no script is named.
  private(set) var script: Script?
  /// `-i`
  private(set) var isInteractive = false
  /// `-v`, which `-i` implies.
  private(set) var showsVersion = false
  /// `-E`
  private(set) var ignoresEnvironment = false
  /// Whether there is a `-e`.
  private(set) var executes = false
  /// The long options.
  private(set) var options = LongOptions()

  private let vector: [ByteString]
  /// The indices of `--init` and its folder.
  private var project: Range<Int>?
  /// The index of the script's name in the vector; the end if there is none.
  private var scriptIndex: Int

  /// Parses the words. `isTest`: whether the process executes the tests of a file.
  init(_ vector: [ByteString], isTest: Bool = false) throws(Misuse) {
    self.vector = vector
    scriptIndex = vector.count
    var index = 1
    var isAfterDashes = false
    var longWords: [Range<Int>] = []
    var shortWords: [Range<Int>] = []
    scan: while index < vector.count {
      let word = vector[index]
      guard word.bytes.first == UInt8(ascii: "-"), word != "-" else {
        // Options of tests may follow their paths.
        guard let tests = options.tests, tests.isAsked else { break }
        tests.paths.append(word)
        index += 1
        continue
      }
      if word == "--" {
        isAfterDashes = true
        index += 1
        break scan
      }
      if word.hasPrefix("--") {
        let count = try options.parse(
          word, next: index + 1 < vector.count ? vector[index + 1] : nil)
        if project == nil, options.project != nil { project = index..<(index + count) }
        longWords.append(index..<(index + count))
        index += count
        if ByteString(word.split(at: "=", maxSplits: 1)[0]) == "--send" {
          while index < vector.count, KeepingOptions.isMessage(vector[index]) {
            options.kept?.send(vector[index])
            index += 1
          }
        }
      } else {
        let count = try takeShort(at: index)
        shortWords.append(index..<(index + count))
        index += count
      }
    }
    if let tests = options.tests {
      try finish(tests, index, longWords, shortWords)
    } else if index < vector.count {
      scriptIndex = index
      script =
        vector[index] == "-" && !isAfterDashes ? .standardInput : .file(vector[index])
      if !isAfterDashes { lateSandbox = vector[(index + 1)...].first(where: Self.asksForSandbox) }
    }
    if options.completes, !hasFile {
      throw LongOptions.misuse(
        "option '--completions' needs a script: --completions bash release.lua")
    }
    // A test is in a sandbox of its own.
    if options.tests == nil, !isTest { try options.confinement?.check() }
    if options.printsJSON, !options.checks {
      throw LongOptions.misuse("option '--json' belongs to '--check', which isn't there")
    }
    try options.checkWritten()
    if let kept = options.kept, let receiver = kept.receiver {
      guard !kept.sent.isEmpty else {
        throw LongOptions.misuse(
          "option '--send' needs messages: --send \(receiver) name=value")
      }
      if kept.choice != nil { kept.choice = .run(receiver) }
    }
  }

  /// Completes the options of tests: the paths after `--`, and the words for the process of each file.
  private func finish(
    _ tests: TestOptions, _ index: Int, _ longWords: [Range<Int>], _ shortWords: [Range<Int>]
  ) throws(Misuse) {
    if tests.isAsked {
      tests.paths += vector[index...]
      for words in shortWords { tests.passed += vector[words] }
      for words in longWords {
        let name = ByteString(vector[words.lowerBound].split(at: "=", maxSplits: 1)[0])
        if let option = Option.named(name) { pass(vector[words], of: option, to: tests) }
      }
      script = .tests
      // They hold for the processes of the files.
      tests.time = options.confinement?.time
      options.confinement = nil
      options.usesVirtualClock = false
    } else if index < vector.count {
      script = .file(vector[index])
    }
    try check(tests)
  }

  /// The options outside of limits and permissions that the process of a test file takes, and those without a meaning
  /// there.
  private static let passedOptions: [ByteString] = [
    "--workers", "--grace", "--time-limit", "--cpu-limit",
  ]
  private static let ignoredOptions: [ByteString] = [
    "--virtual-clock", "--color", "--help", "--version",
  ]

  /// Notes the words of an option: the process of each test file takes them, or they have no effect with `--test`.
  private func pass(_ words: ArraySlice<ByteString>, of option: Option, to tests: TestOptions) {
    if option.section == .tests || Self.ignoredOptions.contains(option.name) { return }
    if option.section == .limits || Self.passedOptions.contains(option.name) {
      tests.passed += words
    } else {
      tests.foreign = tests.foreign ?? option.name
    }
  }

  /// Refuses options that have no effect together.
  private func check(_ tests: TestOptions) throws(Misuse) {
    guard tests.isAsked else {
      guard let companion = tests.companion else { return }
      throw LongOptions.misuse("option '\(companion)' belongs to '--test', which isn't there")
    }
    if let foreign = tests.foreign {
      throw LongOptions.misuse("option '\(foreign)' can't be combined with '--test'")
    }
    if isInteractive { throw LongOptions.misuse("option '-i' can't be combined with '--test'") }
    guard let junit = tests.junit else { return }
    if TextFile.isScript(junit) {
      throw LongOptions.misuse("option '--junit' would write over the script '\(junit)'")
    }
    if let reason = TextFile.obstacle(to: junit, isReplaced: true) {
      throw LongOptions.misuse("option '--junit' can't write '\(junit)': \(reason)")
    }
  }

  /// Refuses whatever is on the command line beside `--init`, which executes no script.
  func checkProject() throws(Misuse) {
    guard let project,
      let other = vector.indices.dropFirst().first(where: { !project.contains($0) })
    else { return }
    let word = vector[other]
    throw LongOptions.misuse(
      word.bytes.first == UInt8(ascii: "-")
        ? "option '--init' can't be combined with '\(word)'"
        : "option '--init' takes one folder and executes no script: '\(word)' is too much")
  }

  /// A word after the script that would be an option before it, and with which the user may believe that the script is
  /// in a sandbox; nil without one.
  private(set) var lateSandbox: ByteString?

  private static func asksForSandbox(_ word: ByteString) -> Bool {
    word == "--sandbox" || word == "--sandbox=strict"
  }

  private var hasFile: Bool { if case .file? = script { true } else { false } }

  /// The program's name in messages.
  var program: ByteString { Self.programName(vector) }

  /// The name of the script as it was given; else the program's.
  var title: ByteString {
    switch script {
    case .file(let path): path
    case .standardInput: "standard input"
    case .tests, nil: program
    }
  }

  static func programName(_ vector: [ByteString]) -> ByteString {
    vector.first.flatMap { $0.bytes.isEmpty ? nil : $0 } ?? "flowlua"
  }

  /// Parses a short option; returns the number of its words.
  private func takeShort(at index: Int) throws(Misuse) -> Int {
    let word = vector[index]
    let letter = word.bytes[1]
    let rest = ByteString(word.bytes.dropFirst(2))
    if letter == UInt8(ascii: "e") || letter == UInt8(ascii: "l") {
      var value = rest
      if rest.bytes.isEmpty {
        guard index + 1 < vector.count, vector[index + 1].bytes.first != UInt8(ascii: "-") else {
          throw Misuse(message: "'\(word)' needs argument", status: 1, showsUsage: true)
        }
        value = vector[index + 1]
      }
      if letter == UInt8(ascii: "e") {
        executes = true
        preparations.append(.execute(value))
      } else {
        preparations.append(Self.library(value))
      }
      return rest.bytes.isEmpty ? 2 : 1
    }
    guard rest.bytes.isEmpty else { throw Self.unrecognized(word) }
    switch letter {
    case UInt8(ascii: "E"): ignoresEnvironment = true
    case UInt8(ascii: "W"): preparations.append(.warnings)
    case UInt8(ascii: "i"):
      isInteractive = true
      showsVersion = true
    case UInt8(ascii: "v"): showsVersion = true
    default: throw Self.unrecognized(word)
    }
    return 1
  }

  private static func unrecognized(_ word: ByteString) -> Misuse {
    Misuse(message: "unrecognized option '\(word)'", status: 1, showsUsage: true)
  }

  /// `mod` or `global=mod`.
  private static func library(_ value: ByteString) -> Preparation {
    guard let sign = value.bytes.firstIndex(of: UInt8(ascii: "=")) else {
      return .require(module: value, global: value)
    }
    return .require(
      module: ByteString(value.bytes[(sign + 1)...]),
      global: ByteString(value.bytes[..<sign]))
  }

  /// The first kind of short option that executes code; nil without one.
  var codeOption: ByteString? {
    if executes { return "-e" }
    if isInteractive { return "-i" }
    for case .require in preparations { return "-l" }
    return nil
  }

  /// The words of the table `arg`: the script at 0, its arguments after it, all earlier words at
  /// negative indices.
  var arg: (words: [ByteString], zero: Int) {
    (vector, scriptIndex < vector.count ? scriptIndex : 0)
  }
}

/// Replaces the function by which Swift's `CommandLine` asks for the arguments of the process.
///
/// The object of the runtime's archive that has the function also has an initialiser. It reads the 50 lines of
/// /proc/self/maps at each start, to find arguments that the C library has handed over already: a tenth of the time of a
/// start. A linker takes an object from an archive only for a name that nothing else has, so that object stays out of
/// the program. In debug builds, whose runtime is a shared library, it stays in.
@c(_swift_stdlib_getUnsafeArgvArgc)
func runtimeArguments(
  _ count: UnsafeMutablePointer<Int32>
) -> UnsafePointer<UnsafeMutablePointer<CChar>?>? {
  flowsystem_arguments(count)
}
