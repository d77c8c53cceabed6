internal import FlowEngine

/// What the command line asks for. Words are bytes: a file name needn't be UTF-8.
struct CommandLineArguments {
  /// Where the script comes from.
  enum Source {
    case file(ByteString)
    case standardInput
  }

  /// Why a command line can't be understood, and with which status the program ends then.
  struct Misuse: Error {
    let message: ByteString
    let status: Int32
    let showsUsage: Bool
  }

  /// An option of the short kind stands for itself; a long one is flowlua's own.
  private enum Option: String, CaseIterable {
    case help = "--help"
    case version = "--version"
  }

  /// What happens instead of running a script.
  enum Information { case help, version }

  let program: ByteString
  private(set) var source: Source = .standardInput
  private(set) var information: Information?
  /// Where the script's name stands in the vector; its end when there is none.
  private(set) var scriptIndex: Int
  private let vector: [ByteString]

  init(_ vector: [ByteString]) throws(Misuse) {
    self.vector = vector
    program = vector.first ?? "flowlua"
    scriptIndex = vector.count
    var index = 1
    while index < vector.count {
      let word = vector[index]
      if word == "--" {
        index += 1
        break
      }
      guard word.bytes.starts(with: "-".utf8), word != "-" else { break }
      guard word.bytes.starts(with: "--".utf8) else {
        throw Misuse(message: "unrecognized option '\(word)'", status: 1, showsUsage: true)
      }
      switch Option(rawValue: word.description) {
      case .help: information = .help
      case .version: information = .version
      case nil:
        throw Misuse(message: Self.unknown(word), status: 2, showsUsage: false)
      }
      index += 1
    }
    if index < vector.count {
      scriptIndex = index
      source = vector[index] == "-" ? .standardInput : .file(vector[index])
    }
  }

  /// The arguments of the script: what `...` and `arg` from 1 on are.
  var scriptArguments: ArraySlice<ByteString> { vector.dropFirst(scriptIndex + 1) }

  /// The pairs of the table `arg`: the script at 0, its arguments behind, all before it negative.
  var argPairs: [(index: Int, text: ByteString)] {
    vector.enumerated().map {
      ($0.offset - (scriptIndex < vector.count ? scriptIndex : 0), $0.element)
    }
  }

  static let usage: ByteString = """
    usage: flowlua [options] [script [args]]
    Available options are:
      --help     show this help
      --version  show the version
      --         stop handling options
      -          stop handling options and execute stdin

    """

  private static func unknown(_ word: ByteString) -> ByteString {
    let nearest = Option.allCases.map(\.rawValue)
      .min { distance($0, word.description) < distance($1, word.description) }
    let hint = nearest.map { " (did you mean '\($0)'?)" } ?? ""
    return "unrecognized option '\(word)'\(hint)"
  }

  /// How many letters must change to turn one word into another.
  private static func distance(_ left: String, _ right: String) -> Int {
    var row = Array(0...right.utf8.count)
    for (i, a) in left.utf8.enumerated() {
      var diagonal = row[0]
      row[0] = i + 1
      for (j, b) in right.utf8.enumerated() {
        let above = row[j + 1]
        row[j + 1] = min(diagonal + (a == b ? 0 : 1), above + 1, row[j] + 1)
        diagonal = above
      }
    }
    return row[right.utf8.count]
  }
}
