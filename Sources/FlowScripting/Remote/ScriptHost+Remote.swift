public import FlowEngine
internal import FlowRemote
@_spi(Scripting) internal import LuaVM

/// What `flow.remote` takes for fields that it isn't given, such as the options of the command line.
package struct RemoteDefaults: Sendable {
  /// How long jobs wait while no machine could execute them; nil for the usual time.
  package var timeout: Duration?
  package var isInsecure = false
  package var shared = RemoteSharedFolders()

  package init() {}
}

/// How the ops of a host with `thread = "remote"` execute.
package final class RemoteOps: HostService {
  /// The server whose machines execute them; nil for none. Set it before the first of them starts.
  package var settings: RemoteSettings?
  /// What `flow.remote` takes for fields that it isn't given.
  package var defaults = RemoteDefaults()
  /// Whether machines have been started that join this server, and no other.
  package var hasStartedMachines = false
  /// The text of `FLOWLUA_REMOTE_KEY` for the server of `flow.remote`.
  package var key: ByteString?
  /// The jobs on other machines, once there have been some.
  fileprivate(set) var dispatcher: RemoteDispatcher?

  func hostWillClose(_ host: ScriptHost) {
    dispatcher?.close()
    dispatcher = nil
  }
}

extension ScriptHost {
  package var remoteOps: RemoteOps { service { RemoteOps() } }

  /// Makes a task on another machine stop; false if it isn't one.
  func stopRemote(_ number: UInt64, _ error: FlowError) -> Bool {
    existing(RemoteOps.self)?.dispatcher?.stop(number, error) == true
  }

  /// Sends replies that wait for further ones, because code may be busy for long from now on.
  func sendWaitingReplies() { existing(RemoteOps.self)?.dispatcher?.sendWaitingReplies() }

  /// Ends the jobs on other machines, for a process that ends next: the server has received what was sent to it then, unless
  /// it hasn't taken that for 1 s.
  func closeRemote(isTerminated: Bool) {
    guard let remote = existing(RemoteOps.self)?.dispatcher else { return }
    remote.close(isTerminated: isTerminated)
    _ = loop.run { remote.hasEnded }
  }

  /// Closes the host, for a process that ends next: a server of remote ops has received what was sent to it then, unless
  /// it hasn't taken that for 1 s.
  package func closeAtExit() {
    let remote = existing(RemoteOps.self)?.dispatcher
    close()
    if let remote { _ = loop.run { remote.hasEnded } }
  }

  /// Whether ops with `thread = "remote"` execute on other machines: else in workers, as in tests.
  var usesRemote: Bool { waitingLoops.isEmpty && loop.processReplacement == nil }

  /// Has the ops of scripts with `thread = "remote"` execute on the machines of a server of NATS, as `flow.remote` and
  /// `--remote` do. Nothing is connected before the first of them starts.
  ///
  /// - Parameters:
  ///   - url: The URL of the server, such as `tls://10.0.0.7`, or those of a cluster with commas between them.
  ///   - timeout: How long ops wait while no machine could execute them.
  ///   - isInsecure: Whether servers of other machines may be reached without TLS.
  ///   - shared: Absolute paths of folders that all machines have: files below them aren't sent.
  ///   - key: A random text that the machines have in `FLOWLUA_REMOTE_KEY`, with which messages are sealed; nil for none.
  /// - Throws: A `FlowError` of kind `usage` for a URL, a folder or a key that can't be used, for a connection that would
  ///   have to be secure, and after the first op has started.
  public func useRemote(
    _ url: String, timeout: Duration = .seconds(60), isInsecure: Bool = false,
    shared: [String] = [],
    key: String? = nil
  ) throws(FlowError) {
    loop.checkThread()
    guard remoteOps.dispatcher == nil else {
      throw .usage("an op with thread = \"remote\" has started")
    }
    var folders = RemoteSharedFolders()
    for path in shared { try folders.add(ByteString(path)) }
    let key = key.map { ByteString($0) } ?? remoteOps.key
    try useRemote(ByteString(url), timeout: timeout, isInsecure: isInsecure, folders, key: key)
    // Also for a server that the script names itself.
    remoteOps.key = key
  }

  private func useRemote(
    _ url: ByteString, timeout: Duration?, isInsecure: Bool, _ shared: RemoteSharedFolders,
    key: ByteString?
  ) throws(FlowError) {
    var settings = try RemoteSettings(url: url)
    if let timeout { settings.timeout = timeout }
    settings.isInsecure = isInsecure
    settings.shared = shared
    try settings.setKey(key)
    try settings.check()
    remoteOps.settings = settings
  }

  /// The jobs on other machines.
  var remote: RemoteDispatcher {
    get throws(FlowError) {
      if let made = remoteOps.dispatcher { return made }
      guard let settings = remoteOps.settings else {
        throw .usage(
          """
          no server of NATS is known for thread = "remote": flowlua --remote nats://HOST script.lua, FLOWLUA_REMOTE, or \
          flow.remote { url = "nats://HOST" }
          """)
      }
      let made = try RemoteDispatcher(self, settings)
      if isOpen { remoteOps.dispatcher = made }
      return made
    }
  }

  /// `flow.remote { url =, timeout =, insecure =, shared = }`: the server whose machines execute ops with `thread = "remote"`.
  func installRemote() {
    define("remote") { host, call in
      let arguments = Arguments(host, call, "remote")
      let options = try arguments.options(1, known: ["url", "timeout", "insecure", "shared"])
      let remote = host.remoteOps
      guard remote.dispatcher == nil else {
        throw host.usage(
          call, "bad use of 'remote' (call it before the first op with thread = \"remote\" starts)")
      }
      guard !remote.hasStartedMachines else {
        throw host.usage(
          call, "bad use of 'remote' (the machines of --hosts have joined another server)")
      }
      try host.checkAllowed(.requests, call, "remote")
      guard let url = try options.string("url") else {
        throw options.wrong("url", expected: "string")
      }
      let defaults = remote.defaults
      let timeout = try options.duration("timeout", orZero: false) ?? defaults.timeout
      let isInsecure = try options.boolean("insecure") ?? defaults.isInsecure
      var shared = options.value("shared") == nil ? defaults.shared : RemoteSharedFolders()
      for path in try host.paths(options, "shared") {
        do throws(FlowError) { try shared.add(path) } catch {
          throw arguments.wrong(1, "field 'shared': \(error.message)")
        }
      }
      do throws(FlowError) { if let key = remote.key { try RemoteSeal.check(key) } } catch {
        throw host.usage(call, "bad use of 'remote' (\(error.message))")
      }
      do throws(FlowError) {
        try host.useRemote(
          url, timeout: timeout, isInsecure: isInsecure, shared, key: remote.key)
      } catch {
        throw arguments.wrong(1, "field 'url': \(error.message)")
      }
      return call.answer()
    }
  }
}
