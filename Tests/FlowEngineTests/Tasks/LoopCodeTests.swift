import FlowEngine
import Testing

@Suite("Async code of libraries on a loop")
struct LoopCodeTests {
  private let loop = FlowEventLoop(clock: VirtualClock())

  @Test("A value that comes at once, later, or from a helper thread, of which the first one counts")
  func values() {
    var later: ((Int) -> Void)?
    var got: [Int?] = []
    loop.perform { [loop] in
      got.append(
        await loop.value {
          $0(1)
          $0(2)
        })
      got.append(await loop.value { later = $0 })
      got.append(try await loop.onHelperThread { 4 })
    }
    #expect(got == [1])
    later?(3)
    later?(5)
    loop.runUntilIdle()
    #expect(got == [1, 3, 4])
  }

  @Test("A wait ends when nothing can bring the value any more")
  func released() {
    var function: ((Int) -> Void)?
    var got: [Int?] = []
    loop.perform { [loop] in got.append(await loop.value { function = $0 }) }
    #expect(function != nil && got.isEmpty)
    function = nil
    loop.runUntilIdle()
    #expect(got == [nil])
  }

  @Test("The end of the loop ends all waits, and nobody gets a result")
  func shutdown() {
    var function: ((Int) -> Void)?
    var ended: [FlowError.Kind?] = []
    func run(_ body: @escaping () async throws(FlowError) -> Void) {
      loop.perform {
        do throws(FlowError) {
          try await body()
          ended.append(nil)
        } catch {
          ended.append(error.kind)
        }
      } then: { _ in
        Issue.record("a result without a loop")
      }
    }
    run { [loop] in _ = await loop.value { function = $0 } }
    run { [loop] () throws(FlowError) in try await loop.pause(.seconds(3600)) }
    run { [loop] () throws(FlowError) in try await loop.onHelperThread {} }
    #expect(function != nil && ended.isEmpty)
    loop.shutdown()
    #expect(ended.count == 3 && ended.contains(nil) && ended.count { $0 == .cancelled } == 2)
  }
}
