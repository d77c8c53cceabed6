import FlowLoop
import Glibc
import Testing

@Suite("The event loop")
struct LoopTests {
  @Test("Timers fire by deadline, then in the order of creation")
  func timersComeByDeadlineThenByOrder() {
    let loop = makeLoop()
    var order: [Int] = []
    for (number, time) in [30, 10, 20, 10, 30, 10].enumerated() {
      loop.schedule(at: Int64(time)) { order.append(number) }
    }
    loop.runUntilIdle()
    #expect(order == [1, 3, 5, 2, 0, 4])
    #expect(loop.now() == 30)
  }

  @Test("Cancelled timers don't fire and don't move the clock")
  func cancelledTimersAreGoneAndDoNotMoveTheClock() {
    let loop = makeLoop()
    var count = 0
    let timers = (0..<10_000).map { index in
      loop.schedule(at: Int64(index * 7 % 10_000)) { count += 1 }
    }
    for (index, timer) in timers.enumerated() where index % 4 != 0 { timer.cancel() }
    loop.schedule(at: 1_000_000) {}.cancel()
    loop.runUntilIdle()
    #expect(count == 2500)
    #expect(loop.now() < 10_000)
    #expect(timers.allSatisfy { !$0.isPending })
  }

  @Test("The virtual clock begins in the year 2000")
  func theVirtualClockBeginsIn2000() {
    let clock = VirtualClock()
    #expect(clock.wallBase + clock.now() == 946_684_800_000_000_000)
    clock.advance(to: 5)
    clock.advance(to: 3)
    #expect(clock.now() == 5)
  }

  @Test("A timer fires while jobs keep adding jobs")
  func aTimerComesWhileJobsGoOnMakingJobs() {
    let loop = makeLoop()
    var isDue = false
    loop.schedule(at: 0) { isDue = true }
    func again() {
      if !isDue { loop.enqueue(again) }
    }
    loop.enqueue(again)
    #expect(loop.turn { isDue })
    loop.runUntilIdle()
  }

  @Test("A timer aside fires between jobs and during waits, and keeps no loop alive")
  func aTimerAsideKeepsNoLoopAlive() {
    let loop = FlowEventLoop(timedBy: SystemClock())
    var count = 0
    loop.scheduleAside(after: .seconds(1000)) { count += 1 }
    #expect(loop.turn(mayBlock: true) == .idle)
    // During a wait for something else.
    loop.scheduleAside(after: .seconds(0.001)) { count += 1 }
    loop.schedule(after: .seconds(1000)) {}
    #expect(loop.turn { count == 1 })
    // While jobs keep adding jobs.
    func again() {
      if count < 2 { loop.enqueue(again) }
    }
    loop.enqueue(again)
    loop.scheduleAside(after: .seconds(0.001)) { count += 1 }
    #expect(loop.turn { count == 2 })
    loop.scheduleAside(after: .zero) { count += 1 }.cancel()
    loop.shutdown()
    #expect(!loop.scheduleAside(after: .zero) { count += 1 }.isPending)
    loop.runUntilIdle()
    #expect(count == 2)
  }

  @Test("The result of a turn distinguishes work, waiting and idleness")
  func turnTellsWorkFromWaitingFromIdle() {
    let loop = makeLoop()
    #expect(loop.turn(mayBlock: false) == .idle)
    let timer = loop.schedule(at: 5) {}
    #expect(loop.turn(mayBlock: false) == .waiting)
    timer.cancel()
    #expect(loop.turn(mayBlock: true) == .idle)
    let work = loop.mailbox.begin()
    #expect(loop.turn(mayBlock: false) == .waiting)
    work.end()
    work.end()
    #expect(loop.mailbox.externalWork == 0)
    #expect(loop.turn { false } == false)
  }

  @Test("Posts from threads arrive in order of each thread")
  func postsFromThreadsArriveInOrderOfEachThread() {
    let loop = makeLoop()
    var received: [[Int]] = [[], [], []]
    let box = Received()
    var threads: [pthread_t] = []
    for number in 0..<3 {
      let poster = Poster(loop.mailbox, number, box)
      var thread = pthread_t()
      pthread_create(&thread, nil, { runPoster($0) }, Unmanaged.passRetained(poster).toOpaque())
      threads.append(thread)
    }
    #expect(loop.turn { box.isComplete })
    for thread in threads { pthread_join(thread, nil) }
    box.read { received = $0 }
    #expect(received == Array(repeating: Array(0..<1000), count: 3))
    #expect(loop.turn(mayBlock: true) != .waiting)
  }

  @Test("A virtual clock stands still during work outside the loop")
  func aVirtualClockStandsStillWhileWorkIsOutside() {
    let loop = makeLoop()
    var timeOfPost: Int64 = -1
    loop.schedule(at: 1_000_000_000) {}
    let box = Received()
    let poster = Poster(loop.mailbox, 0, box)
    var thread = pthread_t()
    pthread_create(&thread, nil, { runPoster($0) }, Unmanaged.passRetained(poster).toOpaque())
    #expect(loop.turn { box.count(0) == 1000 })
    timeOfPost = loop.now()
    pthread_join(thread, nil)
    #expect(timeOfPost == 0)
    loop.runUntilIdle()
    #expect(loop.now() == 1_000_000_000)
  }

  @Test("Absurd delays are clamped")
  func absurdDelaysAreClamped() {
    let loop = makeLoop()
    #expect(loop.deadline(after: .seconds(Int64.max)) == .max)
    #expect(loop.deadline(after: .longest + .longest) == .max)
    #expect(loop.deadline(after: .seconds(-5)) == 0)
    #expect(loop.deadline(after: .seconds(0.5)) == 500_000_000)
  }
}

private func runPoster(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let argument { Unmanaged<Poster>.fromOpaque(argument).takeRetainedValue().run() }
  return nil
}

// Only jobs of one loop touch it.
private final class Received: @unchecked Sendable {
  private var numbers: [[Int]] = [[], [], []]

  func add(_ number: Int, _ value: Int) { numbers[number].append(value) }
  func count(_ number: Int) -> Int { numbers[number].count }
  func read(_ body: ([[Int]]) -> Void) { body(numbers) }
  var isComplete: Bool { numbers.allSatisfy { $0.count == 1000 } }
}

private final class Poster: Sendable {
  private let mailbox: LoopMailbox
  private let number: Int
  private let received: Received
  private let work: ExternalWork

  init(_ mailbox: LoopMailbox, _ number: Int, _ received: Received) {
    self.mailbox = mailbox
    self.number = number
    self.received = received
    work = mailbox.begin()
  }

  func run() {
    for value in 0..<1000 {
      mailbox.post { [number, received] _ in received.add(number, value) }
    }
    work.end()
  }
}
