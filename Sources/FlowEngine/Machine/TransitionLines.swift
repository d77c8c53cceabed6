/// The texts of a machine's transitions, each put into the log once: a machine that makes a million
/// transitions makes few different ones.
struct TransitionLines {
  private struct Edge: Hashable {
    let from: Int
    let to: Int
    /// -1 without an event, -2 for a retry.
    let event: Int
  }

  private let logic: any MachineLogic
  private var payloads: [Edge: Payload] = [:]
  /// The last two: a machine often goes to and fro.
  private var recent: (edge: Edge, payload: Payload)?
  private var older: (edge: Edge, payload: Payload)?

  init(_ logic: any MachineLogic) {
    self.logic = logic
  }

  /// `amount -> tariffs`, or `confirmation -> amount on editAmount`.
  mutating func payload(_ from: Int, _ to: Int, _ event: Int?, _ log: EventLog) -> Payload {
    payload(Edge(from: from, to: to, event: event ?? -1), log)
  }

  /// `retry amount`.
  mutating func payload(retrying step: Int, _ log: EventLog) -> Payload {
    payload(Edge(from: step, to: step, event: -2), log)
  }

  @inline(__always)
  private mutating func payload(_ edge: Edge, _ log: EventLog) -> Payload {
    // What no text may show can be more by now.
    if log.secrets != nil { return log.payload(text(edge)) }
    if let recent, recent.edge == edge { return recent.payload }
    if let older, older.edge == edge {
      (self.recent, self.older) = (older, recent)
      return older.payload
    }
    let payload = payloads[edge] ?? log.payload(text(edge))
    payloads[edge] = payload
    older = recent
    recent = (edge, payload)
    return payload
  }

  private func text(_ edge: Edge) -> ByteString {
    let to = logic.name(ofStep: edge.to)
    if edge.event == -2 { return "retry \(to)" }
    let from = logic.name(ofStep: edge.from)
    return edge.event < 0
      ? "\(from) -> \(to)" : "\(from) -> \(to) on \(logic.name(ofEvent: edge.event))"
  }
}
