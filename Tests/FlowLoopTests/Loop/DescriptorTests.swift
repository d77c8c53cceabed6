import FlowLoop
import Glibc
import Testing

/// Loops of a process that has no descriptor left.
@Suite("The loop without descriptors")
struct DescriptorTests {
  @Test("A loop without a descriptor polls for work and opens one later")
  func loopWithoutADescriptorLooksForWorkAndOpensOneLater() async {
    await #expect(processExitsWith: .success) {
      var limit = rlimit()
      getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      let present = limit.rlim_cur
      limit.rlim_cur = 0
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      let loop = makeTimedLoop()
      precondition(loop.mailbox.descriptor == -1)
      do throws(SystemError) {
        try loop.mailbox.open()
        preconditionFailure("there was a descriptor")
      } catch {
        precondition(error.code == EMFILE)
      }
      var ticks = 0
      loop.schedule(after: .seconds(0.002)) { ticks += 1 }
      loop.runUntilIdle()
      precondition(ticks == 1)

      let mail = Mail(loop.mailbox)
      mail.send(after: 20_000)
      loop.runUntilIdle()
      precondition(mail.hasArrived)

      limit.rlim_cur = present
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      let second = Mail(loop.mailbox)
      second.send(after: 20_000)
      loop.runUntilIdle()
      precondition(second.hasArrived && loop.mailbox.descriptor >= 0)
    }
  }
}

/// Something that a thread posts.
// Unchecked: the loop's thread alone reads and writes whether it has arrived.
private final class Mail: @unchecked Sendable {
  private(set) var hasArrived = false
  private let mailbox: LoopMailbox
  private let external: ExternalWork

  init(_ mailbox: LoopMailbox) {
    self.mailbox = mailbox
    external = mailbox.begin()
  }

  /// Posts it from another thread, in so many microseconds.
  func send(after delay: UInt32) {
    let box = Unmanaged.passRetained(
      Sending {
        usleep(delay)
        self.mailbox.post { _ in self.hasArrived = true }
        self.external.end()
      })
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        Unmanaged<Sending>.fromOpaque(argument).takeRetainedValue().work()
        return nil
      }, box.toOpaque())
    pthread_detach(thread)
  }
}

private final class Sending {
  let work: () -> Void
  init(_ work: @escaping () -> Void) { self.work = work }
}
