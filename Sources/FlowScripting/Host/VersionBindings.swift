public import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.requires`, beside the field `flow.version`, and `flow.deprecated`.
struct VersionBindings {
  let host: ScriptHost

  func install() {
    host.define("requires") { host, call in
      let arguments = Arguments(host, call, "requires")
      let text = try arguments.string(1)
      guard let wanted = FlowLuaVersion(text) else {
        throw arguments.wrong(1, "a version such as '1.2' expected, got '\(text)'")
      }
      if !FlowLuaVersion.present.satisfies(wanted) {
        throw host.usage(
          call,
          "the script needs flowlua \(text), or a later \(wanted.major).x, but this is "
            + "\(FlowLuaVersion.number)")
      }
      return call.answer()
    }
    host.define("deprecated") { host, call in
      let arguments = Arguments(host, call, "deprecated")
      func text(_ index: Int) throws -> ByteString {
        let text = try arguments.string(index)
        if text.isEmpty { throw arguments.wrong(index, "a text expected, got an empty string") }
        return text
      }
      let (name, advice) = (try text(1), try text(2))
      let version = arguments.isNil(3) ? nil : try text(3)
      // The caller of the function that calls this one; without one, for example within the function of an op, that
      // function.
      try host.noteDeprecation(of: name, advice, since: version) {
        let position = call.position(level: 2)
        return position.isEmpty ? call.position : position
      }
      return call.answer()
    }
  }
}

/// The version of flowlua.
package struct FlowLuaVersion {
  /// The version of this program. The only place of the number: `scripts/install` reads it from the program, and a
  /// test compares the changelog. Between two releases it is the next one's with `-dev`.
  package static let number: ByteString = "1.1.0-dev"

  /// The parts of `number`.
  static let present = FlowLuaVersion(number) ?? FlowLuaVersion(major: 0, minor: 0, patch: 0)

  let major: Int
  let minor: Int
  let patch: Int

  private init(major: Int, minor: Int, patch: Int) {
    self.major = major
    self.minor = minor
    self.patch = patch
  }

  /// Parses one to three numbers with dots between them; those that are missing are 0. After them may be `-dev`: a
  /// version that is being made counts as made.
  init?(_ text: ByteString) {
    let isReleased = !text.hasSuffix("-dev")
    let parts = (isReleased ? text : ByteString(text.bytes.dropLast(4))).split(at: ".")
    guard parts.count <= 3 else { return nil }
    var numbers = [0, 0, 0]
    for (index, part) in parts.enumerated() {
      guard !part.isEmpty, part.count <= 9 else { return nil }
      for digit in part {
        guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
        numbers[index] = numbers[index] * 10 + Int(digit - UInt8(ascii: "0"))
      }
    }
    self.init(major: numbers[0], minor: numbers[1], patch: numbers[2])
  }

  /// Whether it has all that another version has: of the same major version, and not older.
  func satisfies(_ wanted: FlowLuaVersion) -> Bool {
    major == wanted.major && (minor, patch) >= (wanted.minor, wanted.patch)
  }
}

/// Warnings of what a later version won't have: of flowlua, of the program that embeds it, or of a library of ops.
extension ScriptHost {
  /// The effect of a script that uses something deprecated.
  ///
  /// ```swift
  /// host.deprecations = .reported { print("warning: \($0)") }
  /// ```
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

  /// The effect of a script that uses something deprecated; set it before the first worker is needed, as workers keep
  /// what it was then. Code on other nodes reports nothing.
  public var deprecations: Deprecations {
    get { existing(DeprecationReports.self)?.effect ?? .ignored }
    set { service { DeprecationReports() }.effect = newValue }
  }

  /// Warns that a script uses something deprecated, in the way that `deprecations` says. Call it in a function, in a
  /// method, in a property or in the closure of an `OpClass`, on the thread of the host: the warning has the line of
  /// the script that is calling.
  ///
  /// - Parameters:
  ///   - name: The deprecated name, as scripts write it: `Account:deposit`.
  ///   - advice: The advice what to do instead: `use Account:add`.
  ///   - version: The version of the program since when it is deprecated; nil says nothing about it.
  /// - Throws: An error to raise in the script if deprecations are refused.
  public func noteDeprecation(
    of name: String, _ advice: String, since version: String? = nil
  ) throws {
    try noteDeprecation(
      of: ByteString(name), ByteString(advice), since: version.map { ByteString($0) }
    ) { vm.position }
  }

  /// Notes a deprecation with the `file:line: ` that is needed unless deprecations are ignored.
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
    throw usage(at: position(), message)
  }

  /// Reports a deprecation with its place, unless it has been reported.
  func reportDeprecation(_ text: ByteString) {
    guard let reports = existing(DeprecationReports.self),
      case .reported(let report) = reports.effect,
      reports.texts.count < Self.deprecationLimit, reports.texts.insert(text).inserted
    else { return }
    report(text)
  }

  private static let longestPart = 65_536
  /// How many are reported at most: code can give any names.
  private static let deprecationLimit = 1000
}

private final class DeprecationReports: HostService {
  var effect = ScriptHost.Deprecations.ignored
  /// Those that have been reported.
  var texts: Set<ByteString> = []
}
