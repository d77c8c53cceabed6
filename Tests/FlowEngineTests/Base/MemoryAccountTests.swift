import FlowEngine
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
