/// An execution in progress. Nodes refer to each other by their places in `ProgressNodes`.
struct ProgressNode {
  /// Nil for what encloses all runs.
  var log: ProgressLog?
  var id: UInt64 = 0
  var scope: UInt32 = 0
  var position: UInt32 = 0
  var isItem = false
  var start: Int64 = 0
  /// The name of the limit for which it waits.
  var limit: ByteString?
  var kind = ProgressRow.Kind.op
  /// The log of the run that an op has started, if this is one.
  var child: ProgressLog?
  var parent = ProgressNodes.none
  var first = ProgressNodes.none
  var last = ProgressNodes.none
  var next = ProgressNodes.none
  var previous = ProgressNodes.none
  var hasHadChildren = false
  var attempt = 1
  /// When the attempt began, if it isn't the first one.
  var attemptStart: Int64?
  /// When the delay before the next attempt ends.
  var due: Int64?
  /// How many items or steps have ended by themselves, and the number of all.
  var ended = 0
  var total: Int?
  var failed = 0
  /// How many of those that have ended are kept.
  var kept = 0
  /// How much within it has failed.
  var failuresWithin = 0
  /// The last steps that have ended.
  var endedSteps = EndedSteps()
  /// The progress that the op has reported.
  var reported: (done: Double, total: Double?)?
  var transition: ByteString?
  /// The programs and requests of the op that are running.
  var works: [LoggedWork] = []
  /// The message of the last failure within it.
  var failureWithin: ByteString?
  /// Whether it is a run that continues after the op that has started it.
  var hasOutlivedParent = false
  /// Whether it has had a row.
  var wasShown = false
  var isStopped = false
}

/// The last steps of a flow that have ended: those that may have rows.
struct EndedSteps {
  /// A step of a flow that has ended. It refers to nothing, because many steps take each other's place.
  struct Step {
    let scope: UInt32
    let position: UInt32
    let duration: Int64
    let hasFailed: Bool
    var isKept = false
    /// Whether it is the undo of a step.
    var isUndo = false
  }

  /// How many there are at most.
  static let limit = 4

  /// The log that all of them are in.
  private(set) var log: EventLog?
  private var steps: ContiguousArray<Step> = []
  /// The index of the oldest step, which the next one replaces.
  private var oldest = 0

  var isEmpty: Bool { steps.isEmpty }

  @inline(__always)
  mutating func add(_ step: Step, in log: EventLog) {
    if steps.count == Self.limit {
      steps[oldest] = step
      oldest = oldest == Self.limit - 1 ? 0 : oldest &+ 1
    } else {
      self.log = log
      steps.append(step)
    }
  }

  /// The steps, the oldest first.
  var inOrder: [Step] { Array(steps[oldest...] + steps[..<oldest]) }
}

/// The log of a run whose executions have nodes.
final class ProgressLog {
  let log: EventLog

  // Unchecked exclusivity: see HotPath.swift.

  /// The node of the run itself; `none` after its end.
  @exclusivity(unchecked) var root: Int32
  /// The nodes by the ids of their executions.
  @exclusivity(unchecked) var known: [UInt64: Int32]
  /// The node that encloses the executions of the last record's scope.
  @exclusivity(unchecked) private var lastScope: UInt32?
  @exclusivity(unchecked) private var lastParent = ProgressNodes.none

  init(_ log: EventLog, root: Int32) {
    self.log = log
    self.root = root
    known = [0: root]
  }

  /// The node that encloses the execution of a record. All executions of a scope have the same.
  @inline(__always)
  func parent(of record: LogRecord) -> Int32 {
    if lastScope == record.scope { return lastParent }
    return findParent(of: record)
  }

  @inline(never)
  private func findParent(of record: LogRecord) -> Int32 {
    lastParent = log.parentID(of: record).flatMap { known[$0] } ?? root
    lastScope = record.scope
    return lastParent
  }

  /// Records that a node is removed.
  func forget(_ node: Int32, id: UInt64) {
    known[id] = nil
    if root == node { root = ProgressNodes.none }
    if lastParent == node { lastScope = nil }
  }
}

/// The executions in progress as a tree: the children of each are in the order of their starts. No depth of
/// nesting, and no number of children, needs recursion.
struct ProgressNodes {
  static let none: Int32 = -1
  /// The node that encloses all runs.
  static let top: Int32 = 0

  private var nodes: ContiguousArray<ProgressNode> = [ProgressNode()]
  private var free: ContiguousArray<Int32> = []
  /// How many nodes there are, without the top.
  private(set) var count = 0
  /// How many of them are items with nothing within them.
  private(set) var leafItemCount = 0

  subscript(_ index: Int32) -> ProgressNode {
    // Without a copy, which would retain what the node refers to.
    _read { yield nodes[Int(index)] }
    _modify { yield &nodes[Int(index)] }
  }

  var isEmpty: Bool { count == 0 }

  /// Adds a node as the last child of another one.
  mutating func add(_ node: ProgressNode, to parent: Int32) -> Int32 {
    let index = free.popLast() ?? Int32(truncatingIfNeeded: nodes.count)
    if index == nodes.count { nodes.append(node) } else { nodes[Int(index)] = node }
    count += 1
    if node.isItem { leafItemCount += 1 }
    link(index, to: parent)
    return index
  }

  private mutating func link(_ index: Int32, to parent: Int32) {
    let last = nodes[Int(parent)].last
    nodes[Int(index)].parent = parent
    nodes[Int(index)].previous = last
    nodes[Int(index)].next = Self.none
    nodes[Int(parent)].last = index
    if last == Self.none {
      nodes[Int(parent)].first = index
    } else {
      nodes[Int(last)].next = index
    }
    if nodes[Int(parent)].isItem, !nodes[Int(parent)].hasHadChildren { leafItemCount -= 1 }
    nodes[Int(parent)].hasHadChildren = true
  }

  private mutating func unlink(_ index: Int32) {
    let (parent, next, previous) = (
      nodes[Int(index)].parent, nodes[Int(index)].next, nodes[Int(index)].previous
    )
    if next == Self.none {
      nodes[Int(parent)].last = previous
    } else {
      nodes[Int(next)].previous = previous
    }
    if previous == Self.none {
      nodes[Int(parent)].first = next
    } else {
      nodes[Int(previous)].next = next
    }
  }

  /// Moves a node to another parent.
  mutating func move(_ index: Int32, to parent: Int32) {
    unlink(index)
    link(index, to: parent)
  }

  /// Removes a node without children.
  mutating func remove(_ index: Int32) {
    unlink(index)
    if nodes[Int(index)].isItem, !nodes[Int(index)].hasHadChildren { leafItemCount -= 1 }
    count -= 1
    // Its texts and its log are released with it.
    nodes[Int(index)] = ProgressNode()
    free.append(index)
  }

  /// The nodes that enclose a node, the innermost first, and not the top.
  func ancestors(of index: Int32) -> some Sequence<Int32> {
    sequence(first: nodes[Int(index)].parent) { nodes[Int($0)].parent }
      .lazy.prefix { $0 > Self.top }
  }
}
