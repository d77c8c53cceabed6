package import FlowEngine
internal import FlowRemote
internal import FlowScripting
@_spi(Scripting) internal import LuaVM

/// The nodes that have been heard of lately.
package final class RemoteNodes {
  struct Node {
    let info: RemoteNodeInfo
    let tags: RemoteTags
    /// On the system's clock.
    let heard: Int64
    /// Why it can't execute ops of this program; nil if it can.
    let refusal: ByteString?
  }

  /// A node of another program or key can't replace one that can execute ops.
  private struct ID: Hashable {
    let id: ByteString
    let isCompatible: Bool
  }

  private var byID: [ID: Node] = [:]
  private let seal: RemoteSeal?
  /// The name of the script's key.
  private var key: ByteString { seal?.name ?? "" }
  /// Called once for each node that can't execute ops of this program, with a sentence about it.
  var onMismatch: ((ByteString) -> Void)?

  /// How often a node says that it is there.
  static let interval = Duration.seconds(2)
  /// How many nodes that lack tags an error names.
  private static let mostNamed = 5
  /// A node that hasn't been heard for so many nanoseconds is gone.
  static let silence: Int64 = 7_000_000_000

  init(_ seal: RemoteSeal?) {
    self.seal = seal
  }

  /// Takes what a node says of itself; false if it lacks the proof of its key.
  func note(_ bytes: [UInt8]) -> Bool {
    guard let info = RemoteNodeInfo.read(bytes) else { return true }
    let isProven = seal.map { info.key != $0.name || $0.isProven(bytes) } ?? true
    let refusal =
      isProven ? info.problem(withKey: key) : "it has no proof of its FLOWLUA_REMOTE_KEY"
    let id = ID(id: info.id, isCompatible: refusal == nil)
    let isNew = byID[id] == nil
    let tags = (try? RemoteTags(info.tags)) ?? RemoteTags()
    byID[id] =
      info.isLeaving
      ? nil : Node(info: info, tags: tags, heard: LuaVM.monotonicTime, refusal: refusal)
    if isNew, isProven, !info.isLeaving, let refusal {
      let isOther = info.compatibility != RemoteProtocol.compatibility
      let own: ByteString =
        ", this is \(FlowLuaVersion.number) with Lua \(ByteString(LuaVM.release))"
      onMismatch?(
        "\(info.name) can't execute ops of this script: \(refusal)\(isOther ? own : "")")
    }
    return isProven
  }

  /// Forgets the nodes that are gone.
  func forget(before now: Int64) {
    byID = byID.filter { now - $0.value.heard < Self.silence }
  }

  /// Those that can execute ops of this program.
  var all: [Node] { byID.filter { $0.key.isCompatible }.map(\.value) }

  /// How many workers those have that have tags. A node may claim anything, so none counts for more than many.
  func workers(with tags: RemoteTags) -> Int {
    all.reduce(0) { $0 + ($1.tags.covers(tags) ? min(max(1, $1.info.workers), 256) : 0) }
  }

  /// The error of an op that no node executes.
  ///
  /// - Parameters:
  ///   - tags: The tags that it demands.
  ///   - settings: The server, and how long the op has waited.
  ///   - lanes: Where it has executed before, such as `m1/1`.
  /// - Returns: The error, which says why each node that is there can't execute it.
  func failure(
    of tags: RemoteTags, _ settings: RemoteSettings, after lanes: [ByteString]
  ) -> FlowError {
    var text: ByteString = "no node that has joined \(settings.place) executes it"
    if !tags.isEmpty {
      text = text + ": none has the tags '\(tags.text)'"
      let lacking = all.filter { !$0.tags.covers(tags) }.sorted { $0.info.name < $1.info.name }
      for node in lacking.prefix(Self.mostNamed) {
        let own: ByteString =
          node.tags.isEmpty ? "no tags" : "the tags '\(node.tags.text)'"
        text = text + "; \(node.info.name) has \(own)"
      }
      let others = lacking.count - Self.mostNamed
      if others > 0 { text = text + "; \(others) more" }
    }
    for lane in lanes.suffix(Self.mostNamed) { text = text + "; it was lost in '\(lane)'" }
    for other in byID.values.sorted(by: { $0.info.name < $1.info.name }) {
      if let refusal = other.refusal { text = text + "; \(other.info.name): \(refusal)" }
    }
    if let loss = settings.loss.withLock({ $0 }) { return FlowError(.error, "\(text): \(loss)") }
    let waited = FlowValue.text(of: settings.timeout)
    return FlowError(.error, "\(text) (waited \(waited); flowlua --join \(settings.place))")
  }

  /// Whether a node with a name is there.
  func isThere(_ name: ByteString) -> Bool {
    byID.contains { $0.key.isCompatible && $0.value.info.name == name }
  }
}

extension RemoteNodes {
  /// The reply of a node.
  package struct Answer {
    package let info: RemoteNodeInfo
    /// The time from the question to the answer.
    package let delay: Duration
    /// Why it can't execute ops of this program; nil if it can.
    package let refusal: ByteString?
  }

  /// Asks which nodes are there, and waits a second for their answers.
  package static func ask(
    _ settings: RemoteSettings, on loop: FlowEventLoop
  ) async throws(FlowError) -> [Answer] {
    let nodes = RemoteNodes(try settings.seal())
    let queue = try await RemoteQueue.open(
      settings.servers, compatibility: RemoteProtocol.compatibility, seal: nodes.seal, on: loop)
    defer { queue.close() }
    let began = LuaVM.monotonicTime
    let inbox = NATSConnection.newInbox()
    try queue.connection.subscribe(inbox) { _ = nodes.note($0.data.bytes) }
    try queue.connection.publish("flowlua.who", "", reply: inbox)
    try await loop.pause(.seconds(1))
    return nodes.byID.values.sorted { $0.info.name < $1.info.name }.map {
      Answer(info: $0.info, delay: .nanoseconds($0.heard - began), refusal: $0.refusal)
    }
  }
}
