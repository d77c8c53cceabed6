internal import FlowEngine
internal import FlowRemote
@_spi(Scripting) internal import LuaVM

extension ScriptHost {
  /// Whether ops with `thread = "remote"` execute on other machines: else in workers, as in tests.
  var usesRemote: Bool { waitingLoops.isEmpty && loop.processReplacement == nil }

  /// The jobs on other machines.
  var remote: RemoteDispatcher {
    get throws(FlowError) {
      if let openRemote { return openRemote }
      guard let remoteSettings else {
        throw .usage(
          """
          no server of NATS is known for thread = "remote": flowlua --remote nats://HOST script.lua, or FLOWLUA_REMOTE
          """)
      }
      let made = try RemoteDispatcher(self, remoteSettings)
      if isOpen { openRemote = made }
      return made
    }
  }

  /// `flow.remote { url =, timeout =, insecure =, shared = }`: the server whose machines execute ops with `thread = "remote"`.
  func installRemote() {
    define("remote") { host, call in
      let arguments = Arguments(host, call, "remote")
      let options = try arguments.options(1, known: ["url", "timeout", "insecure", "shared"])
      guard host.openRemote == nil else {
        throw host.usage(
          call, "bad use of 'remote' (call it before the first op with thread = \"remote\" starts)")
      }
      guard !host.hasStartedMachines else {
        throw host.usage(
          call, "bad use of 'remote' (the machines of --hosts have joined another server)")
      }
      try host.checkAllowed(.requests, call, "remote")
      guard let url = try options.string("url") else {
        throw options.wrong("url", expected: "string")
      }
      let timeout = try options.duration("timeout", orZero: false)
      let isInsecure = try options.boolean("insecure") ?? false
      var shared = RemoteSharedFolders()
      for path in try host.paths(options, "shared") {
        do throws(FlowError) { try shared.add(path) } catch {
          throw arguments.wrong(1, "field 'shared': \(error.messageBytes)")
        }
      }
      do throws(FlowError) {
        var settings = try RemoteSettings(url: url)
        if let timeout { settings.timeout = timeout }
        settings.isInsecure = isInsecure
        settings.shared = shared
        try settings.setKey(host.remoteKey)
        try settings.check()
        host.remoteSettings = settings
      } catch {
        throw arguments.wrong(1, "field 'url': \(error.messageBytes)")
      }
      return call.answer()
    }
  }
}
