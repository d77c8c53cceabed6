internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The parts of the module `flow` that have names of their own, such as `flow.testing`. A part is made
/// when a script first reads the field or requires it, so a script without it pays nothing.
final class Submodules: HostService {
  /// Those that have been used, by their names in `flow`.
  var opened: [ByteString: LuaReference] = [:]
}

extension ScriptHost {
  /// Defines the functions of the module; a worker has those that work there.
  func installBindings() throws {
    if !isWorker {
      try OpBindings(host: self).install()
      FlowBindings(host: self).install()
      GraphBindings.install(in: self)
      MainBindings.install(in: self)
      DispatcherBindings(host: self).install()
      try MachineBindings(host: self).install()
      ExecBindings(host: self).installRead()
      KeepingBindings(host: self).install()
      MessageBindings.install(in: self)
      RunsBindings.install(in: self)
      SandboxBindings(host: self).install()
      StopBindings.install(in: self)
      EventListener.install(in: self)
      installRemote()
    }
    Limits.install(in: self)
    TimeBindings(host: self).install()
    try TaskMakers(host: self).install()
    ExecBindings(host: self).install()
    TerminalBindings.install(in: self)
    SecretBindings(host: self).install()
    try SettingBindings(host: self).install()
    VersionBindings(host: self).install()
  }

  /// A part of the module.
  struct Submodule: Sendable {
    /// Its name in `flow`.
    let name: String
    /// Whether workers have it too.
    var worksInWorkers = true
    /// Makes its table, once per host.
    let make: @Sendable (ScriptHost) throws -> LuaReference
  }

  /// All submodules. Their annotations are in `Help/flow.NAME.d.lua`.
  static let submodules = [
    Submodule(name: "csv") { try CSVBindings(host: $0).makeModule() },
    Submodule(name: "http") { try HTTPBindings(host: $0).makeModule() },
    Submodule(name: "json") { try JSONBindings(host: $0).makeModule() },
    Submodule(name: "fs") { try FileBindings(host: $0).makeModule() },
    Submodule(name: "testing", worksInWorkers: false) {
      try TestingBindings(host: $0).makeModule()
    },
  ]

  /// The names for `require`: of the module and of its parts, each also with `flowlua`.
  static let moduleNames: [String] = ["flow", "flowlua"].flatMap { module in
    [module] + submodules.map { "\(module).\($0.name)" }
  }

  /// The module that is meant by the name of one that isn't there, if it is one of these: `json`, `flow.jsn`.
  static func moduleNear(_ name: String) -> String? {
    let part: String = "flow.\(name)"
    if moduleNames.contains(part) { return part }
    return name.hasPrefix("fl") ? NearestName.of(name, in: moduleNames) : nil
  }

  /// The result of `require` of one of these names, which is the first argument of the loader.
  func requiredModule(_ call: LuaCall) throws -> LuaAnswer {
    guard let name = call.bytes(1), let dot = name.bytes.firstIndex(of: UInt8(ascii: ".")) else {
      return call.answer(.reference(module))
    }
    let part = ByteString(name.bytes[(dot + 1)...])
    if let submodule = try submodule(part) { return call.answer(.reference(submodule)) }
    throw usage(call, "module '\(name)' isn't there\(isWorker ? " in a worker" : "")")
  }

  /// The submodule with this name in `flow`, always the same table; nil for an unknown name, and in a
  /// worker for one that only the main script has.
  func submodule(_ name: ByteString) throws -> LuaReference? {
    let open = service { Submodules() }
    if let known = open.opened[name] { return known }
    let text = name.description
    guard let found = Self.submodules.first(where: { $0.name == text }),
      found.worksInWorkers || !isWorker
    else { return nil }
    let made = try found.make(self)
    open.opened[name] = made
    // From now on a field of the module, found without the host.
    try vm.set(.reference(made), text, in: module)
    return made
  }

  /// The name of a submodule whose table this is.
  func submoduleName(of value: LuaReference) -> String? {
    openSubmodules.first { vm.areSame($0.value, value) }?.key.description
  }

  /// The submodules that have been used, by their names in `flow`.
  var openSubmodules: [ByteString: LuaReference] {
    existing(Submodules.self)?.opened ?? [:]
  }
}
