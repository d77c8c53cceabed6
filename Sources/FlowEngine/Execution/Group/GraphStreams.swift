@_spi(Scripting) internal import FlowLoop

/// The streams of a graph that executes: each belongs to the step that writes it.
final class GraphStreams {
  private let plan: GraphPlan
  private let shape: GraphShape
  /// The keys of which the graph gives lists.
  private let given: Set<ByteString>
  private let keys: KeyTable
  private let account: MemoryAccount?
  /// By the step that writes them.
  private var written: [Int: [(key: DataKey, stream: ItemStream)]] = [:]
  /// By the edge.
  private var readers: [Int: ItemReader] = [:]

  init(
    _ plan: GraphPlan, _ shape: GraphShape, giving given: Set<ByteString>, _ keys: KeyTable,
    _ account: MemoryAccount?
  ) {
    self.plan = plan
    self.shape = shape
    self.given = given
    self.keys = keys
    self.account = account
  }

  /// Makes the streams of a step, which starts.
  func begin(_ step: Int) {
    let data = plan.data[step]
    for key in data.emits.sorted() {
      _ = open(key, of: step, collects: keepsList(of: key, step))
    }
  }

  /// Makes the stream of a group's results; nil if they don't pass to other steps.
  func beginGroup(_ step: Int) -> ItemStream? {
    guard let output = plan.data[step].output,
      plan.successors[step].contains(where: { plan.edges[$0].passesItems })
    else { return nil }
    return open(output, of: step, collects: false)
  }

  /// Whether a list of the items under a key is needed.
  func keepsList(of key: ByteString, _ step: Int) -> Bool {
    given.contains(key)
      || plan.successors[step].contains {
        plan.edges[$0].key == key && !plan.edges[$0].passesItems
      }
  }

  private func open(_ key: ByteString, of step: Int, collects: Bool) -> ItemStream {
    let stream = ItemStream(
      limit: shape.buffer(of: step), collects: collects, account: account)
    for edge in plan.successors[step]
    where plan.edges[edge].passesItems && plan.edges[edge].key == key {
      readers[edge] = stream.makeReader()
    }
    written[step, default: []].append((keys.intern(key), stream))
    return stream
  }

  /// The steps that take items which a step writes, one by one or as a list, also through groups and through ops that write
  /// streams themselves; and whether all of these are ops that read streams.
  func takers(of step: Int, isOp: (Int) -> Bool) -> (steps: [Int], areReaders: Bool) {
    var (takers, areReaders) = ([Int](), true)
    var seen: Set<Int> = [step]
    var open = [step]
    while let next = open.popLast() {
      // A group gives lists of its results.
      let keys = isOp(next) ? plan.data[next].emits : plan.data[next].gives
      if !keys.isDisjoint(with: given) { areReaders = false }
      for number in plan.successors[next] {
        let edge = plan.edges[number]
        guard let key = edge.key, keys.contains(key) else { continue }
        if !edge.passesItems || !isOp(edge.to) { areReaders = false }
        guard seen.insert(edge.to).inserted else { continue }
        takers.append(edge.to)
        let data = plan.data[edge.to]
        if data.input != nil || !data.emits.isEmpty { open.append(edge.to) }
      }
    }
    return (takers, areReaders)
  }

  /// A step that writes streams wasn't executed: what takes the items doesn't know them.
  ///
  /// - Returns: Readers of nothing, in place of the lists that are needed.
  func lose(_ step: Int) -> [(key: DataKey, reader: ItemReader)] {
    (written[step] ?? []).compactMap { key, stream in
      stream.isLost = true
      return keepsList(of: keys.name(of: key), step) ? (key, stream.makeReader()) : nil
    }
  }

  /// The stream that a step writes under a key.
  func stream(_ key: DataKey, of step: Int) -> ItemStream? {
    written[step]?.first { $0.key == key }?.stream
  }

  /// The reader that has read the fewest items of a stream of a step, and how many; nil if none reads.
  func slowest(_ key: DataKey, of step: Int) -> (step: Int, read: Int, written: Int)? {
    guard let stream = stream(key, of: step) else { return nil }
    let name = keys.name(of: key)
    return plan.successors[step].filter { plan.edges[$0].key == name }
      .compactMap { edge in
        readers[edge].flatMap {
          $0.isClosed ? nil : (plan.edges[edge].to, $0.position, stream.count)
        }
      }
      .min { $0.1 < $1.1 }
  }

  /// Gives a step, which starts, what it takes item by item.
  func passReaders(to step: Int, _ bucket: DataBucket) {
    for edge in plan.predecessors(of: step) {
      if let reader = readers[edge], let key = plan.edges[edge].key {
        bucket.set(keys.intern(key), .opaque(reader))
      }
    }
  }

  /// A step has ended, or won't be executed: it reads no more, and writes no more.
  ///
  /// - Returns: The lists of all items that are needed, by their keys.
  func end(
    _ step: Int, _ error: FlowError?
  ) -> [(key: DataKey, items: ContiguousArray<FlowValue>)] {
    for edge in plan.predecessors(of: step) { readers[edge]?.close() }
    return (written[step] ?? []).compactMap { key, stream in
      stream.end(error)
      return stream.takeAll().map { (key, $0) }
    }
  }

  /// Ends all, for a graph that has ended.
  func close() {
    for reader in readers.values { reader.close() }
    (written, readers) = ([:], [:])
  }
}

/// Which steps of a graph with a limit wait for streams: meanwhile they don't execute.
struct StreamSlots {
  /// The waits of the steps that have given their slots to others.
  private var paused: [Int: Int] = [:]
  /// Those that wait for a slot, since they needn't wait for their stream any more.
  private var resuming = FIFO<(step: Int, wait: StreamWait)>()

  /// A step waits; returns whether it gives its slot back.
  mutating func pause(_ step: Int) -> Bool {
    paused[step, default: 0] += 1
    return paused[step] == 1
  }

  /// One of the waits of a step is over; returns whether it was the last one, so that the step takes a slot.
  mutating func resume(_ step: Int) -> Bool {
    guard let waits = paused[step] else { return false }
    paused[step] = waits > 1 ? waits - 1 : nil
    return waits == 1
  }

  /// A step ends; returns whether it had no slot.
  mutating func end(_ step: Int) -> Bool { paused.removeValue(forKey: step) != nil }

  /// Whether a step needs a slot when one of its waits is over: its other code has none while it waits, too.
  func needsSlot(_ step: Int) -> Bool { paused[step] == 1 }

  mutating func queue(_ step: Int, _ wait: StreamWait) { resuming.append((step, wait)) }

  mutating func next() -> (step: Int, wait: StreamWait)? { resuming.popFirst() }

  mutating func remove(_ wait: StreamWait) { resuming.removeAll { $0.wait === wait } }
}

/// A graph with a limit, which doesn't count its steps while they wait for streams.
protocol StreamGraph: AnyObject {
  /// A step waits for a stream.
  func pauses(_ step: Int)
  /// A step needn't wait for its stream any more.
  func resumes(_ step: Int, _ wait: StreamWait)
  /// The code of a step is stopped while it waits for a stream: it executes until it has ended.
  func forgets(_ step: Int, _ wait: StreamWait)
}

/// The end of a stream that an op reads or writes.
struct StreamEnd {
  let key: DataKey
  let isWritten: Bool
  /// The waits of the op.
  weak var waits: StreamWaits?
  /// The step that executes the op; nil unless the graph limits how many do.
  let place: (graph: any StreamGraph, step: Int)?
}

/// The waits of an op's code for streams.
final class StreamWaits {
  /// In the order in which they began; some have ended.
  private var all: ContiguousArray<StreamWait> = []
  private var ended = 0

  /// The last one to begin that hasn't ended.
  var last: StreamWait? { all.last { !$0.hasEnded } }

  fileprivate func add(_ wait: StreamWait) { all.append(wait) }

  /// One of them has ended. Only now and then those are removed: an op may have thousands.
  fileprivate func noteEnd() {
    ended += 1
    if ended * 2 < all.count { return }
    all.removeAll(where: \.hasEnded)
    ended = 0
  }
}

/// A wait of an op's code for a stream. A graph that limits how many ops execute doesn't count the op meanwhile.
package final class StreamWait {
  let end: StreamEnd
  private let isOver: () -> Void
  fileprivate private(set) var hasEnded = false

  /// `isOver` is called once, unless the wait is abandoned.
  init(_ end: StreamEnd, isOver: @escaping () -> Void) {
    self.end = end
    self.isOver = isOver
  }

  /// Begins, once the stream knows whom to notify: another op, which gets the slot, may use the stream at once.
  func begin() {
    end.waits?.add(self)
    if let place = end.place { place.graph.pauses(place.step) }
  }

  /// There is what it waits for.
  func isDue() {
    if hasEnded { return }
    if let place = end.place { place.graph.resumes(place.step, self) } else { hasSlot() }
  }

  /// The op executes again.
  func hasSlot() {
    if hasEnded { return }
    leave()
    isOver()
  }

  /// The code waits no longer, because it is stopped.
  func abandon() {
    if hasEnded { return }
    leave()
    if let place = end.place { place.graph.forgets(place.step, self) }
  }

  private func leave() {
    hasEnded = true
    end.waits?.noteEnd()
  }
}

/// The writing end of a stream, for the code of an op.
package final class StreamOutput {
  private let stream: ItemStream
  private let type: FlowValueType
  private let end: StreamEnd

  init(_ stream: ItemStream, _ type: FlowValueType, _ end: StreamEnd) {
    self.stream = stream
    self.type = type
    self.end = end
  }

  /// The number of the next item.
  package var next: Int { stream.count + 1 }

  /// Whether anything still takes the items.
  package var isRead: Bool { stream.isRead }

  /// The name of the type that an item should have; nil if it has it.
  package func mismatch(_ item: FlowValue) -> ByteString? { type.mismatch(item.plain) }

  /// Whether an item can be written at once.
  package var hasRoom: Bool { stream.hasRoom }

  /// Writes an item, for which there is room.
  package func write(_ item: FlowValue) { stream.put(item) }

  /// Writes an item as soon as there is room, and then calls a function.
  ///
  /// - Returns: Ends the wait; then the item isn't written.
  package func write(_ item: FlowValue, then: @escaping () -> Void) -> () -> Void {
    let wait = StreamWait(end, isOver: then)
    let stream = stream
    let waiter = stream.whenRoom {
      stream.put(item)
      wait.isDue()
    }
    wait.begin()
    return {
      stream.stopWaiting(waiter)
      wait.abandon()
    }
  }
}
