internal import FlowEngine
internal import FlowScripting
internal import Glibc

/// The launcher of the machine on one host.
final class HostLaunch: ProcessLineReader {
  private let host: HostOptions.Host
  private let settings: RemoteSettings
  private unowned let keeper: HostKeeper
  private var child: ChildProcess?
  private var lines: ProcessLines?
  private(set) var hasEnded = false
  private var attempts = 0
  /// The line in which `ssh` says that a port of the host isn't free.
  private var refusal: ByteString?

  /// How often another port is tried.
  private static let mostAttempts = 5

  init(_ host: HostOptions.Host, _ settings: RemoteSettings, _ keeper: HostKeeper) {
    self.host = host
    self.settings = settings
    self.keeper = keeper
  }

  /// Starts it; returns the reason why there is no such program.
  func begin() -> ByteString? {
    attempts += 1
    refusal = nil
    let plan = keeper.plan
    let places = plan.usesSSH ? settings.loopbackPlaces : []
    let tunnels = places.map { (place: $0, port: Int.random(in: 20_000...31_999)) }
    var request = ProcessRequest(plan.command(on: host, tunnels: tunnels))
    request.input = .pipe
    var problem: ByteString?
    let child = keeper.loop.startChild(request) { [weak self] end in
      guard let self else { return }
      if case .failed(let error) = end, [ENOENT, EACCES, ENOEXEC].contains(error.code ?? 0) {
        problem = error.messageBytes
        hasEnded = true
        return
      }
      ended(end)
    }
    guard child.isPending else { return problem }
    self.child = child
    let lines = child.makeLines()
    self.lines = lines
    lines.open()
    // The token isn't among the words of the command, which every user of a machine can read.
    let url = settings.url(ports: tunnels.map(\.port))
    _ = child.write(url + (plan.key.map { " " + $0 } ?? "") + "\n", for: UnneededWriter.shared)
    readLines()
    return nil
  }

  // MARK: Its lines

  func received(_ line: ProcessLine?) {
    guard let line else { return }
    take(line.text)
    readLines()
  }

  private func readLines() {
    while case .line(let line) = lines?.next(for: self) { take(line.text) }
  }

  /// How the line of `ssh` begins that has no tunnel. An op may print anything.
  private static let refusedTunnel = "Error: remote port forwarding failed"

  private func take(_ line: ByteString) {
    if keeper.plan.usesSSH, line.bytes.starts(with: Self.refusedTunnel.utf8) {
      refusal = line
    } else {
      keeper.say("\(host.name): \(line)")
    }
  }

  // MARK: Its end

  private func ended(_ end: ProcessEnd) {
    child = nil
    if let refusal, !keeper.isEnding {
      if attempts < Self.mostAttempts, begin() == nil { return }
      keeper.say("\(host.name): \(refusal)")
    }
    hasEnded = true
    if !keeper.isEnding {
      keeper.say("\(keeper.plan.program): host '\(host.name)' \(reason(of: end))")
    }
    keeper.ended()
  }

  private func reason(of end: ProcessEnd) -> ByteString {
    let launcher = keeper.plan.options.launcher[0]
    let command = keeper.plan.options.command[0]
    switch end {
    case .failed(let error): return "can't be reached: \(error.messageBytes)"
    case .exited(let result) where result.status == 127:
      return "has no program '\(command)': install it there, or name it with --hosts-command"
    case .exited(let result) where result.status == 0: return "has left"
    case .exited(let result):
      return result.signal.map { "is lost: '\(launcher)' was ended by signal \($0)" }
        ?? "is lost: '\(launcher)' has ended with status \(result.status)"
    default: return "is lost: the status of '\(launcher)' is unknown"
    }
  }

  /// Ends the input of the machine, which ends it.
  func end() { child?.closeInput() }

  /// Stops the launcher.
  func stop() { child?.cancel(because: SystemError("the script has ended")) }
}

/// Nothing waits until a launcher has read a line.
private final class UnneededWriter: ProcessInputWriter, Sendable {
  static let shared = UnneededWriter()
  func inputAdvanced(isOpen: Bool) {}
}
