internal import FlowEngine
internal import FlowSystem
@_spi(Scripting) internal import LuaVM

/// `flow.is_terminal`.
enum TerminalBindings {
  private static let streams: [(name: ByteString, descriptor: Int32)] = [
    ("stdin", STDIN_FILENO), ("stdout", STDOUT_FILENO), ("stderr", STDERR_FILENO),
  ]

  static func install(in host: ScriptHost) {
    host.define("is_terminal") { host, call in
      let arguments = Arguments(host, call, "is_terminal")
      let value = try call.value(1)
      guard let stream = try streams.first(where: { try isMeant($0.name, by: value, host) }) else {
        let names = "io.stdin, io.stdout, io.stderr or the name of one"
        throw arguments.wrong(
          1, "\(names) expected, got \(call.bytes(1).map { "'\($0)'" } ?? "\(arguments.got(1))")")
      }
      // Output that a program captures goes to no terminal.
      let isCaptured =
        stream.descriptor != STDIN_FILENO && host.vm.configuration.output.destination != nil
      return call.answer(.boolean(!isCaptured && isatty(stream.descriptor) != 0))
    }
  }

  /// Whether a value is the name of a stream, or its file in the table `io`.
  private static func isMeant(
    _ name: ByteString, by value: LuaValue, _ host: ScriptHost
  ) throws -> Bool {
    guard case .reference = value else { return value == .string(name) }
    guard case .reference(let io) = try host.vm.rawGet("io", in: try host.vm.globals()),
      io.kind == .table
    else { return false }
    return try host.vm.rawGet(.string(name), in: io) == value
  }
}
