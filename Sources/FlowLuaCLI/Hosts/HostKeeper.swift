internal import FlowEngine
internal import FlowNodes
internal import FlowScripting
internal import FlowSystem

/// The process that starts the nodes of a script, and a server for them, and ends all of them with the script, however
/// that ends. Its first line for the script is the reply of `HostPlan.ready`; the others are lines for the user.
final class HostKeeper {
  let plan: HostPlan
  let loop: FlowEventLoop
  private var server: HostServer?
  private var settings: RemoteSettings?
  private var launches: [HostLaunch] = []
  private var watch: DescriptorWatch?
  /// Lines from before the reply.
  private var early: [ByteString]? = []
  private(set) var isEnding = false
  private var hasEnded = false

  /// How long nodes have to end by themselves once their input has ended.
  private static let patience = Duration.seconds(2)

  /// Made in a process with one thread.
  ///
  /// - Throws: A `SystemError` when the system gives no process that ends programs.
  init(_ plan: HostPlan) throws(SystemError) {
    let problem = flowsystem_kill_programs_when_killed()
    if problem != 0 { throw SystemError(code: problem) }
    self.plan = plan
    if plan.server == nil { server = try HostServer(plan.address) }
    loop = FlowEventLoop()
  }

  /// Works until the script ends; returns the exit status.
  func run() -> Int32 {
    do throws(SystemError) {
      watch = try loop.watch(STDIN_FILENO, ClosureJob { [unowned self] in end() })
    } catch {
      fail(error.message)
    }
    if let settings = plan.server {
      begin(settings)
    } else {
      server?.begin(on: loop) { [unowned self] in serverIsReady($0) }
    }
    _ = loop.turn { hasEnded }
    return 0
  }

  private func serverIsReady(_ result: Result<ByteString, SystemError>) {
    switch result {
    case .failure(let error) where settings == nil: fail(error.message)
    case .failure(let error): say("\(plan.program): \(error.message)")
    case .success(let url):
      do throws(FlowError) { begin(try plan.settings(url)) } catch {
        fail("option '--hosts': \(error.message)")
      }
    }
  }

  /// Starts the nodes, which join a server.
  private func begin(_ settings: RemoteSettings) {
    self.settings = settings
    launches = plan.options.hosts.map { HostLaunch($0, settings, self) }
    for launch in launches {
      if let problem = launch.begin() {
        // Without the launcher no other host can be reached.
        return fail("option '--hosts': \(problem)")
      }
    }
    reply(HostPlan.ready + settings.url())
  }

  // MARK: Lines

  private func reply(_ reply: ByteString) {
    guard let lines = early else { return }
    early = nil
    for line in [reply] + lines { write(line) }
  }

  /// Shows a line to the user.
  func say(_ line: ByteString) {
    if early == nil { write(line) } else { early?.append(line) }
  }

  private func write(_ line: ByteString) {
    var rest = (line.bytes + [UInt8(ascii: "\n")])[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        flowsystem_write_quietly(STDOUT_FILENO, $0.baseAddress, $0.count)
      }
      // A script that is gone reads nothing.
      guard count > 0 || errno == EINTR else { return }
      rest = rest.dropFirst(max(0, count))
    }
  }

  /// Ends with a sentence for the user, who gets no script executed.
  private func fail(_ sentence: ByteString) {
    reply(sentence)
    end()
  }

  // MARK: The end

  /// The beginning of the sentence that the script's process looks for.
  static let noneLeft: ByteString = "no host of '--hosts' is left"

  /// A node has ended.
  func ended() {
    if isEnding { return proceedWithEnd() }
    if launches.allSatisfy(\.hasEnded) {
      let losses = launches.compactMap(\.loss).reduce("") { $0.isEmpty ? $1 : "\($0); \($1)" }
      say("\(plan.program): \(Self.noneLeft): \(losses)")
    }
  }

  /// Ends the nodes, and then the server.
  func end() {
    guard !isEnding else { return }
    isEnding = true
    watch?.end()
    for launch in launches { launch.end() }
    _ = loop.schedule(after: Self.patience) { [weak self] in
      for launch in self?.launches ?? [] { launch.stop() }
    }
    proceedWithEnd()
  }

  private func proceedWithEnd() {
    guard launches.allSatisfy(\.hasEnded) else { return }
    guard let server else { return hasEnded = true }
    server.end { [weak self] in self?.hasEnded = true }
  }
}
