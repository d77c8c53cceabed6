import FlowEngine
import Testing

@testable import FlowNodes
@testable import FlowScripting

@Suite("What is done once for each key")
struct OncePerKeyTests {
  @Test("The first one begins it; the others wait, and continue in their order")
  func order() {
    let works = OncePerKey<Int>()
    var begun = 0
    var ended: [Int] = []
    var end: ((FlowError?) -> Void)?
    for number in 0..<1000 {
      works.need(7) { _ in
        ended.append(number)
      } begin: {
        begun += 1
        end = $0
      }
    }
    #expect(begun == 1 && ended.isEmpty && !works.isDone(7))
    end?(nil)
    #expect(ended == Array(0..<1000))
    #expect(works.isDone(7) && works.keys == [7])
    // A second end has no effect, and afterwards nobody waits.
    end?(.cancelled())
    works.need(7) {
      ended.append($0 == nil ? 1000 : -1)
    } begin: { _ in
      begun += 1
    }
    #expect(begun == 1 && ended.count == 1001 && ended.last == 1000)
  }

  @Test("After a failure all who wait get it, and the next one begins it again")
  func failure() {
    let works = OncePerKey<String>()
    var errors = 0
    var ends: [(FlowError?) -> Void] = []
    for _ in 0..<2 {
      works.need("a") {
        errors += $0 == nil ? 0 : 1
      } begin: {
        ends.append($0)
      }
    }
    ends[0](FlowError(.error, "no"))
    #expect(errors == 2 && !works.isDone("a"))
    works.need("a") {
      errors += $0 == nil ? 0 : 1
    } begin: {
      ends.append($0)
    }
    // The end of the first attempt is over.
    ends[0](nil)
    #expect(ends.count == 2 && !works.isDone("a"))
    ends[1](nil)
    #expect(errors == 2 && works.isDone("a"))
    works.forget("a")
    #expect(!works.isDone("a"))
  }
}
