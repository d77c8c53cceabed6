import FlowEngine
import Testing

@testable import FlowNodes
@testable import FlowScripting

@Suite("What is made once for each key")
struct OncePerKeyTests {
  private let loop = FlowEventLoop(clock: VirtualClock())

  @Test("The first one makes it; the others wait, and continue in their order")
  func order() {
    let works = OncePerKey<Int, String>(loop)
    var made = 0
    var ended: [Int] = []
    var finish: ((String) -> Void)?
    for number in 0..<1000 {
      loop.perform {
        try await works.value(7) {
          made += 1
          return await loop.value { finish = $0 } ?? ""
        }
      } then: {
        #expect((try? $0.get()) == "seven")
        ended.append(number)
      }
    }
    #expect(made == 1 && ended.isEmpty && works[7] == nil)
    finish?("seven")
    loop.runUntilIdle()
    #expect(ended == Array(0..<1000))
    #expect(works[7] == "seven" && works.keys == [7])
    // It is there, and nobody waits.
    loop.perform({ try await works.value(7) { "eight" } }) {
      #expect((try? $0.get()) == "seven")
      made += 1
    }
    #expect(made == 2)
  }

  @Test("After a failure all who wait get it, and the next one makes it again")
  func failure() {
    let works = OncePerKey<String, Int>(loop)
    var errors = 0
    var finish: ((FlowError?) -> Void)?
    func need() {
      loop.perform {
        try await works.value("a") {
          if let error = await loop.value({ finish = $0 }) ?? .cancelled() { throw error }
          return 1
        }
      } then: {
        if case .failure = $0 { errors += 1 }
      }
    }
    need()
    need()
    finish?(FlowError(.error, "no"))
    loop.runUntilIdle()
    #expect(errors == 2 && works["a"] == nil && works.keys.isEmpty)
    need()
    finish?(nil)
    loop.runUntilIdle()
    #expect(errors == 2 && works["a"] == 1)
    works.forget("a")
    #expect(works["a"] == nil)
  }

  @Test("A value that isn't kept is for those who waited")
  func notKept() {
    let works = OncePerKey<Int, Int>(loop, keepsValues: false)
    var got: [Int] = []
    var finish: ((Int) -> Void)?
    func need() {
      loop.perform({ try await works.value(1) { await loop.value { finish = $0 } ?? 0 } }) {
        got.append((try? $0.get()) ?? -1)
      }
    }
    need()
    need()
    finish?(5)
    loop.runUntilIdle()
    #expect(got == [5, 5] && works.keys.isEmpty)
  }

  @Test("Those who wait end with the loop")
  func shutdown() {
    let works = OncePerKey<Int, Int>(loop)
    var ends = 0
    var finish: ((Int) -> Void)?
    for _ in 0..<2 {
      loop.perform {
        defer { ends += 1 }
        return try await works.value(1) { await loop.value { finish = $0 } ?? 0 }
      } then: { _ in
        Issue.record("a result without a loop")
      }
    }
    #expect(finish != nil && ends == 0)
    loop.shutdown()
    #expect(ends == 2)
  }
}
