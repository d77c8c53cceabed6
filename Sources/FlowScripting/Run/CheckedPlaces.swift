package import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Where ops and flows of a script that is checked were added or declared, for findings of the check.
final class CheckedPlaces: HostService {
  /// By name; what was added has the place of that.
  private var added: [ByteString: UInt64] = [:]
  private var declared: [ByteString: UInt64] = [:]

  func noteAdded(_ name: ByteString, at origin: UInt64) {
    if added[name] == nil { added[name] = origin }
  }

  func noteDeclared(_ name: ByteString, at origin: UInt64) {
    if declared[name] == nil { declared[name] = origin }
  }

  /// The place for a finding about an op in a run of another one, or of itself.
  func origin(of name: ByteString, in run: ByteString) -> UInt64? {
    if name == run { return declared[name] ?? added[name] }
    return added[name] ?? declared[name] ?? declared[run] ?? added[run]
  }
}

extension ScriptHost {
  /// Notes where an op was declared, if the script is only checked.
  func noteDeclared(_ op: Op, _ call: LuaCall) {
    if isChecking { service { CheckedPlaces() }.noteDeclared(op.name, at: call.origin) }
  }

  /// Notes where an op was added to a flow, if the script is only checked.
  func noteAdded(_ op: Op, _ call: LuaCall) {
    if isChecking { service { CheckedPlaces() }.noteAdded(op.name, at: call.origin) }
  }

  /// The place of what a finding is about: where its op was added, else where the op or the flow was declared.
  ///
  /// - Parameters:
  ///   - finding: The finding.
  ///   - run: The run that was checked.
  /// - Returns: The file and the line; nil if no script has made it.
  package func place(of finding: FlowFinding, in run: Run) -> (file: ByteString, line: Int)? {
    guard let places = existing(CheckedPlaces.self),
      let origin = places.origin(of: finding.op, in: run.op.name), origin != 0
    else { return nil }
    let text = vm.text(ofOrigin: origin)
    guard let colon = text.bytes.lastIndex(of: UInt8(ascii: ":")),
      let line = Int(String(decoding: text.bytes[(colon + 1)...], as: UTF8.self))
    else { return nil }
    return (ByteString(text.bytes[..<colon]), line)
  }
}
