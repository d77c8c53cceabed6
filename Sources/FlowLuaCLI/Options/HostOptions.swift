internal import FlowEngine
internal import FlowScripting
internal import FlowSystem

/// The options about nodes that are started for a script: `--hosts` and those that begin with it.
final class HostOptions {
  struct Host {
    /// As the launcher takes it.
    let name: ByteString
    /// The number of its workers; nil: one for each core.
    let workers: ByteString?
  }

  private(set) var hosts: [Host] = []
  /// The words of the program that executes a command on a host.
  private(set) var launcher: [ByteString] = ["ssh"]
  /// The words that start flowlua there.
  private(set) var command: [ByteString] = ["flowlua"]
  /// The address of this computer for the nodes; nil: 127.0.0.1.
  private(set) var address: ByteString?
  /// The first option that belongs to `--hosts`.
  private var companion: ByteString?

  // MARK: Hosts

  /// Adds hosts with commas between them; `@FILE` has further ones.
  func add(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    for part in text.split(at: ",") {
      if part.first == UInt8(ascii: "@") {
        try addFile(ByteString(part.dropFirst()))
      } else if part.isEmpty {
        throw LongOptions.misuse(
          "option '--hosts' needs names with commas between them: --hosts a,b; in '\(text)' one is empty"
        )
      } else {
        try add(part, "option '--hosts'")
      }
    }
  }

  /// Adds the hosts of a file: names with commas or line ends between them. A comment begins with `#`.
  private func addFile(_ path: ByteString) throws(CommandLineArguments.Misuse) {
    guard let content = TextFile.read(path) else {
      throw LongOptions.misuse(
        "option '--hosts' can't read '\(path)': \(systemMessage(errno))")
    }
    let count = hosts.count
    let lines = content.split(at: "\n")
    for (index, line) in lines.enumerated() {
      for part in line.prefix(while: { $0 != UInt8(ascii: "#") })
        .split(separator: UInt8(ascii: ","))
      {
        let name = part.trimmed()
        if !name.isEmpty { try add(name, "\(path):\(index + 1)") }
      }
    }
    if hosts.count == count {
      throw LongOptions.misuse("option '--hosts': the file '\(path)' has no names of hosts")
    }
  }

  /// Adds `host` or `N/host`.
  private func add(
    _ text: ArraySlice<UInt8>, _ place: ByteString
  ) throws(CommandLineArguments.Misuse) {
    let digits = text.prefix(while: \.isDigit)
    var name = text
    var workers: ByteString?
    if !digits.isEmpty, text.dropFirst(digits.count).first == UInt8(ascii: "/") {
      name = text.dropFirst(digits.count + 1)
      let number = ByteString(digits)
      guard let count = LongOptions.whole(number), (1...1024).contains(count) else {
        throw LongOptions.misuse(
          "\(place): a number of workers from 1 to 1024 is before the '/', not '\(number)'")
      }
      workers = number
    }
    // A name that begins with '-' would be an option of the launcher.
    guard let first = name.first, first != UInt8(ascii: "-"),
      name.allSatisfy({ $0 > 0x20 && $0 != 0x7F })
    else {
      throw LongOptions.misuse(
        "\(place): the name of a host has no spaces and doesn't begin with '-', not '\(ByteString(text))'"
      )
    }
    let host = Host(name: ByteString(name), workers: workers)
    if hosts.contains(where: { $0.name == host.name }) {
      throw LongOptions.misuse("\(place): '\(host.name)' is named twice")
    }
    hosts.append(host)
  }

  // MARK: The other options

  func setLauncher(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    launcher = try words(of: text, "--hosts-launcher")
  }

  func setCommand(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    command = try words(of: text, "--hosts-command")
  }

  func setAddress(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    companion = companion ?? "--hosts-address"
    let isAddress = text.bytes.allSatisfy {
      $0.isDigit || $0.isLetter || ".-:".bytes.contains($0)
    }
    guard isAddress else {
      throw LongOptions.misuse(
        "option '--hosts-address' needs an address of this computer without a port, such as 10.0.0.7, not '\(text)'"
      )
    }
    address = text
  }

  /// Refuses options that have no effect alone.
  func check(hasServer: Bool) throws(CommandLineArguments.Misuse) {
    if hosts.isEmpty, let companion {
      throw LongOptions.misuse("option '\(companion)' needs --hosts")
    }
    if address != nil, hasServer {
      throw LongOptions.misuse(
        "option '--hosts-address' is for the server that --hosts starts: with --remote there is none"
      )
    }
  }

  /// Splits a command as a shell does: at spaces, unless they are in quotes or after a backslash. Nothing is expanded.
  private func words(
    of text: ByteString, _ option: ByteString
  ) throws(CommandLineArguments.Misuse) -> [ByteString] {
    companion = companion ?? option
    var words: [ByteString] = []
    var word: [UInt8]?
    var quote: UInt8?
    var rest = text.bytes[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "'"), UInt8(ascii: "\""):
        if let open = quote, open != byte {
          word = (word ?? []) + [byte]
        } else {
          quote = quote == nil ? byte : nil
          word = word ?? []
        }
      case UInt8(ascii: "\\") where quote != UInt8(ascii: "'"):
        word = (word ?? []) + (rest.popFirst().map { [$0] } ?? [])
      case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"):
        if quote != nil {
          word = (word ?? []) + [byte]
        } else if let done = word {
          words.append(ByteString(done))
          word = nil
        }
      default: word = (word ?? []) + [byte]
      }
    }
    if quote != nil {
      throw LongOptions.misuse("option '\(option)': a quote isn't closed in '\(text)'")
    }
    if let word { words.append(ByteString(word)) }
    guard words.first?.isEmpty == false else {
      throw LongOptions.misuse("option '\(option)' needs a program, not '\(text)'")
    }
    return words
  }
}
