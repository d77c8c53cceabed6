internal import FlowEngine
internal import FlowScripting
internal import Glibc

/// The keeping of a script's runs, as the command line and the environment ask for it.
final class Keeping {
  private let arguments: CommandLineArguments
  /// nil: only what the script itself wants to be kept.
  private let choice: KeepingOptions.Choice?
  /// The path of the script, as it was given.
  private let path: ByteString

  /// nil if there is no script that runs could be kept for.
  init?(_ arguments: CommandLineArguments) throws(CommandLineArguments.Misuse) {
    self.arguments = arguments
    let asked = arguments.options.kept?.choice
    guard case .file(let path) = arguments.script else {
      if asked == nil { return nil }
      throw Self.misuse("runs can be kept only for a script that is a file")
    }
    self.path = path
    choice =
      asked ?? (!arguments.ignoresEnvironment && Self.isOn(getenv("FLOWLUA_KEEP")) ? .new : nil)
  }

  static func misuse(_ message: ByteString) -> CommandLineArguments.Misuse {
    CommandLineArguments.Misuse(message: message, status: 2, showsUsage: false)
  }

  private static func isOn(_ value: UnsafePointer<CChar>?) -> Bool {
    guard let value else { return false }
    let text = String(cString: value)
    return !text.isEmpty && text != "0"
  }

  /// The path without links, from the root; as it is if there is no such file.
  static func absolute(_ path: ByteString) -> ByteString {
    guard let resolved = path.withCString({ realpath($0, nil) }) ?? nil else { return path }
    defer { free(resolved) }
    return ByteString(Array(UnsafeRawBufferPointer(start: resolved, count: strlen(resolved))))
  }

  /// The store of the scripts of a folder.
  static func folder(besides script: ByteString) -> ByteString {
    let slash = script.bytes.lastIndex(of: UInt8(ascii: "/"))
    return ByteString(Array(script.bytes[..<(slash.map { $0 + 1 } ?? 0)])) + ".flowlua"
  }

  /// Keeps the runs of a host, or lets its script ask for that.
  func begin(_ host: ScriptHost, _ messages: Messages) {
    host.onKeeping = { keeping in
      Self.messages = messages
      Self.open = keeping
      // Scripts can end by os.exit, too.
      on_exit({ status, _ in Keeping.end(isFinished: status == 0) }, nil)
    }
    host.onKeepingWarning = { messages.say($0) }
    if choice == nil {
      host.keepingDefaults = makeOptions
    } else {
      host.keep(makeOptions()) { messages.say($0) }
    }
  }

  private func makeOptions() -> ScriptKeeping.Options {
    let script = Self.absolute(path)
    let given = arguments.options.kept
    let folder = given?.store ?? Self.folder(besides: script)
    let words = Array(arguments.arg.words.dropFirst(arguments.arg.zero + 1))
    var kept = ScriptKeeping.Options(folder: folder, script: script, words: words)
    kept.isDry = arguments.options.checks
    if let given {
      kept.trustsCode = given.trustsCode
      kept.settlements = given.settlements
      kept.usesCache = given.usesCache
      if let limit = given.stored.limit { kept.storeLimit = limit }
    }
    switch choice {
    case nil, .new?: kept.resumption = .none
    case .latest?: kept.resumption = .latest
    case .run(let id)?: kept.resumption = .run(id)
    }
    return kept
  }

  // MARK: The end

  /// The exit status of a script that SIGTERM has ended, and that `--resume` continues.
  static let resumableStatus: Int32 = 75

  // Unsafe: used on the main thread only, also while the process exits.
  private nonisolated(unsafe) static var open: ScriptKeeping?
  private nonisolated(unsafe) static var messages: Messages?
  /// Whether the end of the script couldn't be recorded.
  private(set) nonisolated(unsafe) static var hasFailed = false

  /// Records the end of the script, unless that was done; returns whether it was kept.
  @discardableResult
  static func end(isFinished: Bool) -> Bool {
    guard let open else { return false }
    self.open = nil
    guard open.isOpen else { return false }
    do throws(FlowError) {
      try open.end(isFinished: isFinished)
      return true
    } catch {
      messages?.say(error.message)
      hasFailed = true
      return false
    }
  }
}
