@testable import FlowEngine
import Testing

@Suite("Counting held memory")
struct MemoryAccountTests {
  private func account() -> MemoryAccount { MemoryAccount(onGrowth: {}, exceededLimit: { nil }) }
  private func text(_ count: Int) -> ByteString {
    ByteString([UInt8](repeating: 120, count: count))
  }

  /// The standard library doesn't promise that the storage of an array can be referenced weakly.
  @Test("A text counts until the last of its holders releases it")
  func lastHolder() {
    let account = account()
    var first: ByteString? = text(10_000)
    first.map { account.add($0) }
    var second = first
    first = nil
    #expect(account.held >= 10_000)
    #expect(second?.count == 10_000)
    second = nil
    #expect(account.held == 0)
  }

  @Test("A text counts once")
  func twice() {
    let account = account()
    let text = text(10_000)
    for _ in 0..<3 { account.add(text) }
    #expect(account.held == text.bytes.capacity)
    account.handOver(text)
    account.add(text)
    #expect(account.held == 0)
  }

  @Test("Texts that were released are forgotten, also when nobody asks")
  func forgotten() {
    let account = account()
    for _ in 0..<10_000 { account.add(text(1000)) }
    #expect(account.held(within: .max) < 200_000)
  }

  @Test("Small texts don't count")
  func small() {
    let account = account()
    let text = text(512)
    account.add(text)
    #expect(account.held == 0)
    #expect(text.count == 512)
  }

  @Test("What helper threads collect counts until it is taken, and has a limit for all together")
  func collected() throws {
    let account = MemoryAccount(limit: { 1000 }, onGrowth: {}, exceededLimit: { nil })
    var first = account.beginCollecting()
    #expect(first != nil)
    let second = try #require(account.beginCollecting())
    try first?.add(600)
    try second.add(300)
    #expect(account.held == 900)
    #expect(throws: SystemError.self) { try second.add(200) }
    first = nil
    #expect(account.held == 500)
    try second.add(200)
    #expect(self.account().beginCollecting() == nil)
  }

  @Test("Small things are reported together")
  func smallThings() {
    var reports = 0
    let account = MemoryAccount(onGrowth: { reports += 1 }, exceededLimit: { nil })
    for _ in 0..<1000 { account.change(bySmall: 100) }
    #expect(account.held == 100_000)
    #expect((1...10).contains(reports))
    for _ in 0..<1000 { account.change(bySmall: -100) }
    #expect(account.held == 0)
  }

  @Test("A task counts until its release, and one that waits for others with each of them")
  func tasks() {
    let loop = makeLoop()
    let account = account()
    loop.memory = account
    var context: FlowPromise<Int>? = FlowPromise(on: loop, keepsLoop: false)
    context?.task.count(AnyFlowTask.usualSize)
    #expect(account.held == AnyFlowTask.usualSize)
    let tasks = Array(repeating: context?.task, count: 1000).compactMap { $0 }
    var joined: AnyFlowTask? = FlowTask.whenAllFinish(tasks, on: loop)
    #expect(account.held > 100_000)
    #expect(context?.trySetResult(1) == true)
    #expect(joined?.state == .succeeded)
    #expect(account.held == 2 * AnyFlowTask.usualSize)
    joined = nil
    context = nil
    withExtendedLifetime(tasks) {}
  }

  @Test("The steps of a flow count as long as a flow or a run has them")
  func steps() {
    let account = account()
    let op = Op("AOp") { _ in }
    var flow: Flow? = Flow("f")
    for _ in 0..<1000 { flow?.add(op).case("key", "value").add(op).combine() }
    flow?.count(in: account)
    #expect(account.held > 500_000)
    var copy = flow?.copy()
    flow = nil
    #expect(account.held > 500_000)
    copy = nil
    #expect(account.held(within: 0) == 0)
    #expect(copy == nil)
  }

  @Test("An object counts with its present size")
  func object() {
    let account = account()
    final class Block {}
    let block = Block()
    account.add(block, bytes: 1000)
    account.add(block, bytes: 3000)
    #expect(account.held == 3000)
    withExtendedLifetime(block) {}
  }
}
