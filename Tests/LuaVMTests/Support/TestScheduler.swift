@_spi(Scripting) import LuaVM

/// A scheduler with virtual time: when nothing is ready, the clock jumps to the next timer.
final class TestScheduler: LuaScheduler {
  private struct Timer {
    let due: Double
    let order: Int
    let wait: LuaWait
  }

  fileprivate final class Fiber {
    let coroutine: RunningCoroutine
    let task: TestTask
    /// Kept by nobody else on purpose: the state has to keep what a coroutine waits for.
    weak var wait: LuaWait?

    init(_ coroutine: RunningCoroutine, _ task: TestTask) {
      self.coroutine = coroutine
      self.task = task
    }
  }

  private unowned let vm: LuaVM
  private(set) var time = 0.0
  fileprivate var ready: [Fiber] = []
  private var taken = 0
  // Sorted by time, the next one last.
  private var timers: [Timer] = []
  private var made = 0

  init(_ vm: LuaVM) {
    self.vm = vm
  }

  func start(
    _ function: LuaReference, _ arguments: [LuaValue] = [], deadline: Int64 = 0, grace: Int64 = 0
  ) throws -> TestTask {
    let task = TestTask()
    let outcome = vm.start(function, arguments, deadline: deadline, grace: grace)
    if case .refused(let error) = outcome { throw error }
    handle(outcome, task)
    return task
  }

  func addTimer(_ seconds: Double, _ wait: LuaWait) {
    let timer = Timer(due: time + seconds, order: made, wait: wait)
    made += 1
    // By halving: there may be many thousands.
    var low = 0
    var high = timers.count
    while low < high {
      let middle = (low + high) / 2
      let other = timers[middle]
      if (other.due, other.order) > (timer.due, timer.order) {
        low = middle + 1
      } else {
        high = middle
      }
    }
    timers.insert(timer, at: low)
  }

  /// Does one thing; false when there is none.
  func turn() -> Bool {
    if taken < ready.count {
      let fiber = ready[taken]
      taken += 1
      if taken == ready.count {
        ready.removeAll(keepingCapacity: true)
        taken = 0
      }
      handle(vm.resume(fiber.coroutine), fiber.task)
      return true
    }
    guard let timer = timers.popLast() else { return false }
    time = max(time, timer.due)
    timer.wait.ready()
    return true
  }

  func runAll() {
    while turn() {}
  }

  func pump(_ wait: LuaWait) {
    while !wait.isReady {
      if !turn() { wait.fail(LuaError(.runtime, "stalled")) }
    }
  }

  private func handle(_ outcome: LuaOutcome, _ task: TestTask) {
    switch outcome {
    case .returned(let value, _): task.settle(.success(value))
    case .returnedArgument: task.settle(.failure(TestProblem("an argument was returned as such")))
    case .refused(let error): task.settle(.failure(error))
    case .failed(let coroutine):
      let failure = vm.failure(coroutine)
      task.traceback = failure.traceback.description
      vm.release(coroutine, finished: false)
      task.settle(.failure(failure.error))
    case .parked(let coroutine):
      guard let wait = vm.parkedWait() else {
        task.settle(.failure(TestProblem("parked without a wait")))
        return
      }
      let fiber = Fiber(coroutine, task)
      fiber.wait = wait
      wait.waiter = Waiter(self, fiber)
    case .yielded(let coroutine):
      vm.release(coroutine, finished: false)
      task.settle(.failure(TestProblem("attempt to yield from outside a coroutine")))
    case .stopped(let coroutine):
      vm.release(coroutine, finished: false)
      task.isStopped = true
      task.settle(.failure(TestProblem("stopped")))
    }
  }
}

/// The coroutine of an outcome that waits; nil for another one.
func parked(_ outcome: LuaOutcome) -> RunningCoroutine? {
  guard case .parked(let coroutine) = outcome else { return nil }
  return coroutine
}

/// A spawned function and its result.
final class TestTask {
  private(set) var result: Result<LuaValue, any Error>?
  var isStopped = false
  var traceback = ""
  private var waiters: [LuaWait] = []

  func settle(_ result: Result<LuaValue, any Error>) {
    self.result = result
    let waiters = self.waiters
    self.waiters = []
    for waiter in waiters { waiter.ready() }
  }

  func add(_ waiter: LuaWait) {
    if result == nil { waiters.append(waiter) } else { waiter.ready() }
  }
}

final class TaskWait: LuaWait {
  let task: TestTask

  init(_ task: TestTask) {
    self.task = task
  }

  override func finish(_ call: LuaCall) throws -> LuaAnswer {
    guard let result = task.result else { throw TestProblem("awaited too early") }
    return call.answer(try result.get())
  }
}

/// A Swift error that is no LuaError.
struct TestProblem: Error, Equatable, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

/// Continues a fiber.
private final class Waiter: LuaWaiter {
  let scheduler: TestScheduler
  let fiber: TestScheduler.Fiber

  init(_ scheduler: TestScheduler, _ fiber: TestScheduler.Fiber) {
    self.scheduler = scheduler
    self.fiber = fiber
  }

  override func waitIsReady() { scheduler.ready.append(fiber) }
}
