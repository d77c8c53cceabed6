import FlowEngine
import Glibc
import Synchronization

/// The machine's zone must not matter to golden summaries.
private let useUTC: Bool = {
  setenv("TZ", "UTC", 1)
  tzset()
  return true
}()

/// A loop that begins at 12:00:00 AM and needs no real time.
func makeLoop() -> EventLoop {
  _ = useUTC
  return EventLoop(clock: VirtualClock())
}

/// An op that waits `seconds`, then does what `body` says.
func waitingOp(
  _ name: ByteString, _ seconds: Double = 1, needs: [Declaration] = [],
  gives: [Declaration] = [], body: @escaping (OpContext) -> Void = { _ in }
) -> Op {
  Op(name: name, needs: needs, gives: gives, body: SleepingBody(seconds, body))
}

final class SleepingBody: OpBody {
  let seconds: Double
  let body: (OpContext) -> Void

  init(_ seconds: Double, _ body: @escaping (OpContext) -> Void) {
    self.seconds = seconds
    self.body = body
  }

  func start(_ context: OpContext) -> OpProgress {
    let loop = context.loop
    context.state = loop.schedule(at: loop.deadline(after: seconds)) { [body] in
      body(context)
      context.end()
    }
    return .suspended
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? Timer)?.cancel()
    context.end(error)
  }
}

/// Hands its context to somebody, and waits without end.
final class HoldingBody: OpBody {
  private let take: (OpContext) -> Void

  init(_ take: @escaping (OpContext) -> Void) {
    self.take = take
  }

  func start(_ context: OpContext) -> OpProgress {
    take(context)
    return .suspended
  }
}

/// A body that never ends by itself; counts what it is asked.
///
/// A context keeps its run, which keeps this body: who is done with it empties `contexts`.
final class StuckBody: OpBody {
  var contexts: [OpContext] = []
  var asked: [FlowError] = []
  let endsWhenAsked: Bool

  init(endsWhenAsked: Bool = true) {
    self.endsWhenAsked = endsWhenAsked
  }

  func start(_ context: OpContext) -> OpProgress {
    contexts.append(context)
    return .suspended
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    asked.append(error)
    if endsWhenAsked { context.end(error) }
  }
}

/// How large the tests of large things are.
enum Scale {
  /// A nesting that overflows a stack of 8 MiB if anything recursed: 56 bytes a level suffice.
  static let depth = 150_000
  /// A number of ops: a million in an optimized build, fewer where a million take half a minute.
  #if DEBUG
    static let count = 100_000
  #else
    static let count = 1_000_000
  #endif
}

/// Keeps what holds itself, and so is never released, in sight of the leak checker.
func keepReachable(_ object: AnyObject) {
  reachable.withLock { $0.append(UInt(bitPattern: Unmanaged.passRetained(object).toOpaque())) }
}

private let reachable = Mutex<[UInt]>([])

func list(_ items: [String]) -> Value { items.flowValue }

/// A summary without its times and its first and last line.
func lines(_ run: Run) -> [String] {
  run.summary().description.split(separator: "\n").dropFirst().dropLast().map { line in
    let isTimed = line.contains(" AM [") || line.contains(" PM [")
    guard isTimed, let bracket = line.firstIndex(of: "[") else { return String(line) }
    return String(line[bracket...])
  }
}

/// The lines between "start with" and "end with".
func body(_ run: Run) -> [String] {
  let all = lines(run)
  let end = all.lastIndex(of: "[DataBucket] end with:") ?? all.count
  let start =
    all.firstIndex { $0.hasPrefix("[") && $0 != "[DataBucket] start with:" } ?? all.count
  return start < end ? Array(all[start..<end]) : []
}

/// A generator that a printed seed brings back.
struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

// MARK: - Ops, predicates and cleanups

/// An op that succeeds at once.
func quick(_ name: ByteString) -> Op { Op(name) { _ in } }

/// An op that fails at once, or after `seconds`.
func failing(_ name: ByteString, _ message: ByteString = "no", after seconds: Double? = nil) -> Op {
  guard let seconds else { return Op(name) { $0.fail(FlowError(.error, message)) } }
  return waitingOp(name, seconds) { $0.fail(FlowError(.error, message)) }
}

/// The events of a run that say what happened when: `1.5 start AnOp`.
func times(_ run: Run, _ kinds: Set<Event.Kind> = [.start, .finish, .retry]) -> [String] {
  run.events.filter { kinds.contains($0.kind) }.map { "\($0.time) \($0.kind.name) \($0.op)" }
}

/// Answers after half a second, or never.
final class WaitingPredicate: CasePredicate {
  private let answer: Result<Bool, FlowError>?

  init(_ answer: Result<Bool, FlowError>?) {
    self.answer = answer
  }

  func matches(_ data: DataBucket, in run: Run, completion: CallbackCompletion) -> OpProgress {
    guard let answer else { return .suspended }
    let loop = run.loop
    loop.schedule(at: loop.deadline(after: 0.5)) {
      switch answer {
      case .success(let isMatch): completion.answer(isMatch)
      case .failure(let error): completion.finish(error)
      }
    }
    return .suspended
  }
}

/// Waits, then says that it was done, or fails.
final class WaitingCleanup: OpCleanup {
  private let seconds: Double?
  private let error: FlowError?
  private let done: () -> Void

  /// Without `seconds` it waits without end.
  init(_ seconds: Double?, _ error: FlowError? = nil, _ done: @escaping () -> Void = {}) {
    self.seconds = seconds
    self.error = error
    self.done = done
  }

  func cleanUp(_ context: OpContext, completion: CallbackCompletion) -> OpProgress {
    guard let seconds else { return .suspended }
    let loop = context.loop
    loop.schedule(at: loop.deadline(after: seconds)) { [done, error] in
      done()
      completion.finish(error)
    }
    return .suspended
  }
}

/// Which random flows are compared with their models.
enum RandomFlows {
  /// The first seed: the same in every run, unless `FLOWLUA_SEED` is a number or `random`.
  static let firstSeed: UInt64 = {
    guard let text = getenv("FLOWLUA_SEED").map({ String(cString: $0) }) else { return 1 }
    if let seed = UInt64(text) { return seed }
    let seed = UInt64.random(in: 0...(.max >> 1))
    print("FLOWLUA_SEED=\(seed)")
    return seed
  }()

  /// How many: as many as usual, unless `FLOWLUA_FLOWS` says otherwise.
  static func count(_ usual: UInt64) -> UInt64 {
    getenv("FLOWLUA_FLOWS").flatMap { UInt64(String(cString: $0)) } ?? usual
  }
}
