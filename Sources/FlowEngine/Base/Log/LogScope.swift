/// Names the parts of a subject of the log, such as the steps of a flow.
protocol LogParts: AnyObject {
  /// The name of the part at a position; nil when there is none.
  func nameOfPart(at position: UInt32) -> ByteString?
  /// How many parts are executed, one after another or at the same time; nil when that depends on the data.
  var partCount: Int? { get }
}

/// The subject of some records of the log: the top of a run, a nested flow, a group, an inner op,
/// or a run of its own that an op has started.
struct LogScope {
  enum Kind: UInt8 {
    case top, flow, group, child
    /// An op that another op executes over its own data: positions are the 1-based index of the item
    /// in a group, else 0.
    case inner
  }

  /// The scope that encloses it.
  let parent: UInt32
  /// Its place in the parent: a step, or the 1-based index of an item.
  let position: UInt32
  let attempt: UInt32
  /// For an inner op or a run that an op has started: its 1-based number among those that the same attempt
  /// has started. 0 elsewhere.
  let number: UInt32
  let kind: Kind
  /// The name of its subject.
  let name: ByteString
  /// The parts that positions in this scope refer to; nil when positions are items, or mean the
  /// subject itself.
  let parts: (any LogParts)?
  /// When the enclosed execution could have started, in nanoseconds of the loop's clock.
  let queued: Int64
  /// Whether the run of a `child` executes a step of a machine.
  let isStep: Bool

  init(
    parent: UInt32, position: UInt32, attempt: UInt32, number: UInt32 = 0, kind: Kind,
    name: ByteString, parts: (any LogParts)? = nil, queued: Int64,
    isStep: Bool = false
  ) {
    self.parent = parent
    self.position = position
    self.attempt = attempt
    self.number = number
    self.kind = kind
    self.name = name
    self.parts = parts
    self.queued = queued
    self.isStep = isStep
  }
}
