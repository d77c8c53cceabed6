import FlowLoop
import Glibc
import Testing

@Suite("Watches of descriptors")
struct WatchTests {
  private final class Reader: LoopJob {
    let descriptor: Int32
    var watch: DescriptorWatch?
    var received: [UInt8] = []
    var calls = 0

    init(_ descriptor: Int32) {
      self.descriptor = descriptor
    }

    func run() {
      calls += 1
      var buffer = [UInt8](repeating: 0, count: 3)
      let count = read(descriptor, &buffer, buffer.count)
      if count > 0 {
        received += buffer[..<count]
      } else {
        watch?.end()
      }
    }
  }

  private final class Pipe {
    var ends: [Int32] = [-1, -1]
    var isWriterOpen = true

    init() { pipe(&ends) }
    /// Not a deinitializer, as a local variable isn't kept after its last use.
    func close() {
      Glibc.close(ends[0])
      closeWriter()
    }

    func write(_ text: String) { _ = Glibc.write(ends[1], text, text.utf8.count) }
    func closeWriter() {
      if isWriterOpen { Glibc.close(ends[1]) }
      isWriterOpen = false
    }
  }

  @Test("A watch reads to the end, and then the loop is idle")
  func readsUntilTheEndAndThenTheLoopIsIdle() throws {
    let loop = makeLoop()
    let pipe = Pipe()
    defer { pipe.close() }
    let reader = Reader(pipe.ends[0])
    reader.watch = try loop.watch(pipe.ends[0], reader)
    #expect(loop.turn(mayBlock: false) == .waiting)
    pipe.write("hello")
    #expect(loop.turn { reader.received.count == 5 })
    pipe.closeWriter()
    loop.runUntilIdle()
    #expect(reader.received == Array("hello".utf8))
    #expect(reader.calls == 3)
    #expect(reader.watch?.isActive == false)
  }

  /// Descriptors are also looked at now and then in between.
  @Test(
    "The loop doesn't wait for a watch that doesn't hold it, and runs its job beside other work")
  func watchWithoutHold() throws {
    let loop = makeLoop()
    let pipe = Pipe()
    defer { pipe.close() }
    let kept = Pipe()
    defer { kept.close() }
    let reader = Reader(pipe.ends[0])
    let keptReader = Reader(kept.ends[0])
    reader.watch = try loop.watch(pipe.ends[0], reader)
    keptReader.watch = try loop.watch(kept.ends[0], keptReader)
    keptReader.watch?.holdsLoop = false
    kept.write("now")
    pipe.write("hello")
    pipe.closeWriter()
    loop.runUntilIdle()
    #expect(reader.received == Array("hello".utf8))
    #expect(keptReader.received == Array("now".utf8))
    #expect(loop.turn(mayBlock: false) == .idle)
    keptReader.watch?.holdsLoop = true
    #expect(loop.turn(mayBlock: false) == .waiting)
    keptReader.watch?.holdsLoop = false
    keptReader.watch?.end()
    #expect(loop.turn(mayBlock: false) == .idle)
  }

  @Test("A turn that read data doesn't wait for more")
  func aTurnThatHasReadDoesNotWaitForMore() throws {
    let loop = makeTimedLoop()
    defer { loop.shutdown() }
    let work = loop.mailbox.begin()
    for _ in 0..<20 {
      let pipe = Pipe()
      defer { pipe.close() }
      let reader = Reader(pipe.ends[0])
      reader.watch = try loop.watch(pipe.ends[0], reader)
      pipe.closeWriter()
      let deadline = loop.deadline(after: .seconds(1))
      let limit = loop.schedule(at: deadline) {}
      #expect(loop.turn { reader.watch?.isActive == false })
      #expect(loop.now() < deadline)
      limit.cancel()
    }
    work.end()
  }

  @Test("The virtual clock stands still during a watch")
  func theVirtualClockStandsStillMeanwhile() throws {
    let loop = makeLoop()
    let pipe = Pipe()
    defer { pipe.close() }
    let reader = Reader(pipe.ends[0])
    reader.watch = try loop.watch(pipe.ends[0], reader)
    var timeOfTimer: Int64?
    loop.schedule(at: 1_000_000_000) { timeOfTimer = loop.now() }
    pipe.write("x")
    #expect(loop.turn { !reader.received.isEmpty })
    #expect(loop.now() == 0)
    pipe.closeWriter()
    loop.runUntilIdle()
    #expect(timeOfTimer == 1_000_000_000)
  }

  @Test("A watch fires while jobs keep adding jobs")
  func comesWhileJobsGoOnMakingJobs() throws {
    let loop = makeLoop()
    let pipe = Pipe()
    defer { pipe.close() }
    let reader = Reader(pipe.ends[0])
    reader.watch = try loop.watch(pipe.ends[0], reader)
    pipe.write("x")
    func again() {
      if reader.received.isEmpty { loop.enqueue(again) }
    }
    loop.enqueue(again)
    #expect(loop.turn { !reader.received.isEmpty })
    reader.watch?.end()
  }

  @Test("Mail arrives alongside descriptors")
  func mailComesBesideDescriptors() throws {
    let loop = makeTimedLoop()
    let pipe = Pipe()
    defer { pipe.close() }
    let reader = Reader(pipe.ends[0])
    reader.watch = try loop.watch(pipe.ends[0], reader)
    let work = loop.mailbox.begin()
    let flag = Flag()
    loop.mailbox.post { _ in flag.isSet = true }
    work.end()
    #expect(loop.turn { flag.isSet })
    var isDue = false
    loop.schedule(at: loop.now() + 1_000_000) { isDue = true }
    #expect(loop.turn { isDue })
    #expect(reader.calls == 0)
    reader.watch?.end()
    #expect(loop.turn(mayBlock: true) == .idle)
  }

  @Test("One job may end the watch of another")
  func oneJobMayEndTheWatchOfAnother() throws {
    let loop = makeLoop()
    let pipes = (0..<10).map { _ in Pipe() }
    defer { pipes.forEach { $0.close() } }
    var watches: [DescriptorWatch] = []
    var calls = 0
    final class Ender: LoopJob {
      var body: () -> Void = {}
      func run() { body() }
    }
    let ender = Ender()
    for pipe in pipes {
      pipe.write("x")
      watches.append(try loop.watch(pipe.ends[0], ender))
    }
    ender.body = {
      calls += 1
      for watch in watches { watch.end() }
    }
    loop.runUntilIdle()
    #expect(calls == 1)
  }

  @Test("Writers are notified when there is room")
  func writersAreToldWhenThereIsRoom() throws {
    let loop = makeLoop()
    let pipe = Pipe()
    defer { pipe.close() }
    var count = 0
    final class Writer: LoopJob {
      var body: () -> Void = {}
      func run() { body() }
    }
    let writer = Writer()
    let watch = try loop.watch(pipe.ends[1], writing: true, writer)
    writer.body = {
      count += 1
      if count == 3 { watch.end() }
    }
    loop.runUntilIdle()
    #expect(count == 3)
  }

  @Test("A watch tells what is ready, and can change what it waits for")
  func watchesChange() throws {
    let loop = makeLoop()
    let pipe = Pipe()
    defer { pipe.close() }
    var seen: [String] = []
    final class Job: LoopJob {
      var body: () -> Void = {}
      func run() { body() }
    }
    let job = Job()
    let watch = try loop.watch(pipe.ends[0], reading: false, writing: false, job)
    let writer = Job()
    let writing = try loop.watch(pipe.ends[1], reading: true, writing: true, writer)
    writer.body = {
      seen.append("\(writing.wasReadable) \(writing.wasWritable)")
      writing.end()
      pipe.write("x")
      try? watch.change(reading: true, writing: false)
    }
    job.body = {
      seen.append("\(watch.wasReadable) \(watch.wasWritable)")
      watch.end()
    }
    loop.runUntilIdle()
    #expect(seen == ["false true", "true false"])
  }

  @Test("A descriptor that can't be watched gives an error")
  func whatCannotBeWatchedSaysSo() throws {
    let loop = makeLoop()
    let error = #expect(throws: SystemError.self) {
      try loop.watch(-1, Reader(-1))
    }
    #expect(error?.message == "a descriptor can't be watched: Bad file descriptor")
    #expect(loop.turn(mayBlock: false) == .idle)
  }

  // Only jobs of one loop touch it.
  private final class Flag: @unchecked Sendable {
    var isSet = false
  }
}
