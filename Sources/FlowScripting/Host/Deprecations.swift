public import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Warnings of what a later version won't have: of flowlua, of the program that embeds it, or of a library of ops.
extension ScriptHost {
  /// The effect of a script that uses something deprecated.
  public enum Deprecations {
    /// Nothing.
    case ignored
    /// A call, on the thread of the host, with a text such as
    /// `main.lua:12: uploads.send is deprecated since 2.0; use uploads.put`: once for each line of the script that
    /// uses something deprecated, and for 1,000 lines at most.
    case reported((ByteString) -> Void)
    /// An error of kind `usage` at that line.
    case refused
  }

  /// Warns that a script uses something deprecated, in the way that `deprecations` says. Call it in a function, in a
  /// method, in a property or in the closure of an `OpClass`, on the thread of the host: the warning has the line of
  /// the script that is calling.
  ///
  /// - Parameters:
  ///   - name: What is deprecated, as scripts write it: `Account:deposit`.
  ///   - advice: What to do instead: `use Account:add`.
  ///   - version: The version of the program since when it is deprecated; nil says nothing about it.
  /// - Throws: An error to raise in the script if deprecations are refused.
  public func noteDeprecation(
    of name: String, _ advice: String, since version: String? = nil
  ) throws {
    try noteDeprecation(
      of: ByteString(name), ByteString(advice), since: version.map { ByteString($0) }
    ) { vm.position }
  }

  /// The same with the `file:line: ` that is needed unless deprecations are ignored.
  func noteDeprecation(
    of name: ByteString, _ advice: ByteString, since version: ByteString?,
    at position: () -> ByteString
  ) throws {
    if case .ignored = deprecations { return }
    // A script can give any length.
    func cut(_ text: ByteString) -> ByteString { text.truncated(to: Self.longestPart) }
    let since = version.map { " since \(cut($0))" as ByteString } ?? ""
    let message: ByteString = "\(cut(name)) is deprecated\(since); \(cut(advice))"
    guard case .refused = deprecations else {
      let shown = loop.secrets.redacted(message).truncated(to: 501)
      return reportDeprecation(loop.secrets.redacted(position()) + shown)
    }
    throw usage(at: position(), message.description)
  }

  /// Reports a deprecation with its place, unless it has been reported.
  func reportDeprecation(_ text: ByteString) {
    guard case .reported(let report) = deprecations,
      reportedDeprecations.count < Self.deprecationLimit,
      reportedDeprecations.insert(text).inserted
    else { return }
    report(text)
  }

  private static let longestPart = 65_536
  /// How many are reported at most: code can give any names.
  private static let deprecationLimit = 1000

  func installDeprecated() {
    define("deprecated") { host, call in
      let arguments = Arguments(host, call, "deprecated")
      func text(_ index: Int) throws -> ByteString {
        let text = try arguments.string(index)
        if text.isEmpty { throw arguments.wrong(index, "a text expected, got an empty string") }
        return text
      }
      let (name, advice) = (try text(1), try text(2))
      let version = arguments.isNil(3) ? nil : try text(3)
      // The caller of the function that calls this one; without one, as in the function of an op, that function.
      try host.noteDeprecation(of: name, advice, since: version) {
        let position = call.position(level: 2)
        return position.isEmpty ? call.position : position
      }
      return call.answer()
    }
  }
}
