internal import FlowEngine
internal import FlowNodes
internal import FlowScripting
internal import FlowSystem

/// A server of NATS on a free port of this computer, for one script.
final class HostServer {
  /// Called with its URL once it is ready, or with the reason why it has ended.
  private var report: ((Result<ByteString, SystemError>) -> Void)?
  private var onEnd: (() -> Void)?
  private let address: ByteString
  private let folder: ByteString
  private let token: ByteString
  private var port: ByteString?
  private var child: HostProgram?
  private var lastLine: ByteString = ""
  private var timer: LoopTimer?
  private var hasEnded = false

  /// The program; Debian's package puts it into a folder that isn't on the path of all users.
  private static let programs: [ByteString] = ["nats-server", "/usr/sbin/nats-server"]
  private static let patience = Duration.seconds(30)

  /// Prepares a server in a process with one thread.
  init(_ address: ByteString) throws(SystemError) {
    self.address = address
    folder = try Sandbox.makeFolder()
    token = RemoteOptions.randomText
    // The token is in a file that only this user can read, not among the words of a command.
    let mask = umask(0o077)
    defer { umask(mask) }
    let problem = TextFile.write(
      """
      host: "\(address)"
      port: -1
      jetstream { store_dir: "\(folder)/store" }
      authorization { token: "\(token)" }

      """, to: folder + "/server.conf")
    if let problem { throw SystemError("can't write '\(folder)/server.conf': \(problem)") }
  }

  /// Starts it.
  func begin(
    on loop: FlowEventLoop, report: @escaping (Result<ByteString, SystemError>) -> Void
  ) {
    self.report = report
    start(Self.programs[...], on: loop)
    timer = loop.schedule(after: Self.patience) { [weak self] in
      self?.child?.stop("it wasn't ready within 30 s")
    }
  }

  private func start(_ programs: ArraySlice<ByteString>, on loop: FlowEventLoop) {
    guard let program = programs.first else { return }
    let request = ProcessRequest([program, "-c", folder + "/server.conf"])
    let child = HostProgram(request, on: loop) { [weak self] in
      self?.take($0)
    } ended: { [weak self] end in
      guard let self else { return }
      if case .failed(let error) = end, error.code == ENOENT, programs.count > 1 {
        return start(programs.dropFirst(), on: loop)
      }
      ended(end)
    }
    if let child { self.child = child }
  }

  // MARK: Its lines

  private func take(_ line: ByteString) {
    lastLine = line
    if line.contains("Listening for client connections on ") {
      let colon = line.bytes.lastIndex(of: UInt8(ascii: ":")) ?? 0
      port = ByteString(line.bytes[(colon + 1)...])
    } else if line.contains("Server is ready"), let port {
      timer?.cancel()
      let host = address.contains(":") ? "[\(address)]" : address
      report?(.success("nats://\(token)@\(host):\(port)"))
    }
  }

  // MARK: Its end

  private func ended(_ end: ProcessEnd) {
    hasEnded = true
    timer?.cancel()
    if let onEnd = onEnd.take() { return onEnd() }
    let reason: ByteString
    switch end {
    case .failed(let error):
      reason = """
        \(error.message) (it is in the Debian package nats-server; or name a server that runs: --remote nats://HOST)
        """
    case .stopped(let error, _): reason = (error as? SystemError)?.message ?? "it was stopped"
    case .exited(let result): reason = "it has ended with status \(result.status): \(lastLine)"
    case .refused(let text): reason = text
    case .lost: reason = "its status is unknown"
    }
    report?(.failure(SystemError("the server of '--hosts' doesn't run: \(reason)")))
  }

  /// Ends it, and calls a closure then.
  func end(_ then: @escaping () -> Void) {
    guard let child, !hasEnded else { return then() }
    onEnd = then
    report = nil
    child.stop("the script has ended")
  }
}
