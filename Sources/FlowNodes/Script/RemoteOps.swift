public import FlowEngine
internal import FlowRemote
public import FlowScripting
@_spi(Scripting) package import LuaVM

/// How the ops of a host with `thread = "remote"` execute: on the nodes of a server of NATS.
package final class RemoteOps: RemoteService {
  /// The server whose nodes execute them; nil for none. Set it before the first of them starts.
  package var settings: RemoteSettings?
  /// The values that `flow.remote` takes for fields that it isn't given.
  package var defaults = RemoteDefaults()
  /// Whether nodes have been started that join this server, and no other.
  package var hasStartedNodes = false
  /// The text of `FLOWLUA_REMOTE_KEY` for the server of `flow.remote`.
  package var key: ByteString?
  // Unowned: the host owns its service.
  private unowned let host: ScriptHost
  /// The jobs on other nodes, once there have been some.
  private var dispatcher: RemoteDispatcher?
  private var isClosed = false

  fileprivate init(_ host: ScriptHost) { self.host = host }

  package func submit(
    _ task: any WorkerTask, _ number: UInt64, _ job: WorkerJob, _ function: WorkerFunction,
    _ tags: RemoteTags, of context: OpContext?
  ) throws(FlowError) {
    try openDispatcher().submit(task, number, job, function, tags, of: context)
  }

  package func stop(_ number: UInt64, _ error: FlowError) -> Bool {
    !isClosed && dispatcher?.stop(number, error) == true
  }

  package func sendWaitingReplies() { if !isClosed { dispatcher?.sendWaitingReplies() } }

  package func close(isTerminated: Bool) {
    // After a termination the host may still be closed.
    if isClosed { return }
    isClosed = !isTerminated
    dispatcher?.close(isTerminated: isTerminated)
  }

  package var hasEnded: Bool { dispatcher?.hasEnded != false }

  private func openDispatcher() throws(FlowError) -> RemoteDispatcher {
    if let dispatcher { return dispatcher }
    guard let settings else {
      throw .usage(
        """
        no server of NATS is known for thread = "remote": flowlua --remote nats://HOST script.lua, FLOWLUA_REMOTE, or \
        flow.remote { url = "nats://HOST" }
        """)
    }
    let made = try RemoteDispatcher(host, settings)
    if !isClosed { dispatcher = made }
    return made
  }

  fileprivate func use(
    _ url: ByteString, _ options: RemoteDefaults, key: ByteString?
  ) throws(FlowError) {
    guard dispatcher == nil else { throw .usage("an op with thread = \"remote\" has started") }
    var made = try RemoteSettings(url: url, options)
    try made.setKey(key)
    settings = made
  }

  /// `flow.remote { url =, timeout =, insecure =, shared = }`: the server whose nodes execute ops with `thread = "remote"`.
  package func use(_ call: LuaCall) throws -> LuaAnswer {
    let arguments = Arguments(host, call, "remote")
    let options = try arguments.options(1, known: ["url", "timeout", "insecure", "shared"])
    guard dispatcher == nil else {
      throw host.usage(
        call, "bad use of 'remote' (call it before the first op with thread = \"remote\" starts)")
    }
    guard !hasStartedNodes else {
      throw host.usage(
        call, "bad use of 'remote' (the nodes of --hosts have joined another server)")
    }
    try host.checkAllowed(.requests, call, "remote")
    guard let url = try options.string("url") else {
      throw options.wrong("url", expected: "string")
    }
    var used = defaults
    used.timeout = try options.duration("timeout", orZero: false) ?? used.timeout
    used.isInsecure = try options.boolean("insecure") ?? used.isInsecure
    if options.value("shared") != nil { used.shared = RemoteSharedFolders() }
    for path in try options.paths("shared") {
      do throws(FlowError) { try used.shared.add(path) } catch {
        throw arguments.wrong(1, "field 'shared': \(error.message)")
      }
    }
    do throws(FlowError) { if let key { try RemoteSeal.check(key) } } catch {
      throw host.usage(call, "bad use of 'remote' (\(error.message))")
    }
    do throws(FlowError) { try use(url, used, key: key) } catch {
      throw arguments.wrong(1, "field 'url': \(error.message)")
    }
    return call.answer()
  }
}

extension ScriptHost {
  /// How ops execute on other nodes. Made with the first use, before a script runs.
  package var remoteOps: RemoteOps {
    if let made = remote as? RemoteOps { return made }
    let made = RemoteOps(self)
    setRemote(made)
    return made
  }

  /// Lets scripts name the server for their ops with `thread = "remote"`, by `flow.remote`, if the host allows requests. Not
  /// needed after `useRemote`.
  public func allowRemote() { _ = remoteOps }

  /// Has the ops of scripts with `thread = "remote"` execute on the nodes of a server of NATS, as `flow.remote` and
  /// `--remote` do. Nothing is connected before the first of them starts.
  ///
  /// - Parameters:
  ///   - url: The URL of the server, such as `tls://10.0.0.7`, or those of a cluster with commas between them.
  ///   - timeout: How long ops wait while no node could execute them.
  ///   - isInsecure: Whether servers of other computers may be reached without TLS.
  ///   - shared: Absolute paths of folders that all nodes have: files below them aren't sent.
  ///   - key: A random text that the nodes have in `FLOWLUA_REMOTE_KEY`, with which messages are sealed; nil for none.
  /// - Throws: A `FlowError` of kind `usage` for a wrong URL, folder or key, for a connection that has to be secure, and
  ///   after the first op has started.
  public func useRemote(
    _ url: String, timeout: Duration = .seconds(60), isInsecure: Bool = false,
    shared: [String] = [],
    key: String? = nil
  ) throws(FlowError) {
    loop.checkThread()
    let remote = remoteOps
    var options = RemoteDefaults()
    (options.timeout, options.isInsecure) = (timeout, isInsecure)
    for path in shared { try options.shared.add(ByteString(path)) }
    let key = key.map { ByteString($0) } ?? remote.key
    try remote.use(ByteString(url), options, key: key)
    // Also for a server that the script names itself.
    remote.key = key
  }
}
