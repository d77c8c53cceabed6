package import FlowEngine
internal import FlowSystem
@_spi(Scripting) internal import LuaVM

/// `flow.sandbox`: restricts the process from now on, and never allows it more.
package struct SandboxBindings {
  let host: ScriptHost

  /// Allows `flow.sandbox`, which restricts the whole process: `make` returns what it grants in addition to what the script
  /// names.
  package static func allow(on host: ScriptHost, _ make: @escaping () -> Sandbox) {
    _ = host.service { SandboxGrant(make) }
  }

  func install() {
    host.define("sandbox") { host, call in
      let arguments = Arguments(host, call, "sandbox")
      guard var sandbox = host.existing(SandboxGrant.self)?.make() else {
        throw host.usage(call, "bad use of 'sandbox' (the host of the script doesn't allow it)")
      }
      if !arguments.isNil(1) {
        let options = try arguments.options(1, known: ["read", "write", "net", "run"])
        sandbox.grants += try Self(host: host).grants(options, "read", .execute)
        sandbox.grants += try Self(host: host).grants(options, "write", .write)
        sandbox.allowsNetwork = try options.boolean("net") ?? false
        sandbox.allowsPrograms = try options.boolean("run") ?? false
      }
      if sandbox.allowsPrograms { sandbox.grants += Sandbox.programs }
      do throws(SystemError) {
        try Self(host: host).enter(&sandbox)
      } catch {
        let advice =
          error.code == EAGAIN
          ? "; call it before the script starts workers, requests or async code, and with --events before the first run"
          : ""
        throw host.usage(call, "can't enter the sandbox: \(error.message)\(advice)")
      }
      try host.vm.confine(
        deniesPrograms: !sandbox.allowsPrograms, temporaryFolder: Sandbox.folder)
      return call.answer()
    }
  }

  /// Ends the threads that have nothing to do, and enters the sandbox, with a folder for temporary files.
  private func enter(_ sandbox: inout Sandbox) throws(SystemError) {
    HelperThreads.shared.retire()
    HelperThreads.computing.retire()
    LuaWatchdog.pause()
    defer {
      if !LuaWatchdog.resume() { Sandbox.endWithoutThread() }
    }
    // The kernel knows of a thread a little longer than the code that ends it.
    for _ in 0..<100 where Sandbox.hasOtherThreads { usleep(500) }
    if !Sandbox.hasOtherThreads, Sandbox.folder == nil {
      let folder = try Sandbox.makeFolder()
      sandbox.grants.append(Sandbox.Grant(folder, .write))
      try sandbox.enter()
      Sandbox.useFolder(folder)
    } else {
      try sandbox.enter()
    }
  }

  /// The grants for the paths of a field.
  private func grants(
    _ options: Options, _ name: ByteString, _ access: Sandbox.Access
  ) throws -> [Sandbox.Grant] {
    try options.paths(name).map { Sandbox.Grant($0, access) }
  }
}

extension Options {
  /// A field that is a path or a list of paths; empty without one.
  package func paths(_ name: ByteString) throws -> [ByteString] {
    let expected = "path or list of paths"
    var paths: [ByteString] = []
    switch value(name) {
    case nil: break
    case .string(let path)?: paths = [path]
    case .reference(let table)? where table.kind == .table:
      for (place, pair) in try arguments.host.vm.pairs(of: table).enumerated() {
        guard case .integer = pair.key, case .string(let path) = pair.value else {
          throw arguments.wrong(
            index,
            "field '\(name)': \(expected) expected, got \(arguments.host.kindName(of: pair.value)) at #\(place + 1)"
          )
        }
        paths.append(path)
      }
    default: throw wrong(name, expected: expected)
    }
    for path in paths where path.isEmpty {
      throw arguments.wrong(index, "field '\(name)': a path is a non-empty string")
    }
    return paths
  }
}

private final class SandboxGrant: HostService {
  let make: () -> Sandbox

  init(_ make: @escaping () -> Sandbox) { self.make = make }
}
