@testable import FlowEngine
import Testing

@Suite("Streams of items")
struct ItemStreamTests {
  private func read(_ reader: ItemReader, _ count: Int = .max) -> [Int64] {
    var items: [Int64] = []
    while items.count < count, case .item(.integer(let item)) = reader.next() { items.append(item) }
    return items
  }

  @Test("Each reader gets every item, and the slowest one decides whether there is room")
  func readers() {
    let stream = ItemStream(limit: 2)
    let (one, other) = (stream.makeReader(), stream.makeReader())
    stream.put(.integer(1))
    #expect(stream.hasRoom)
    stream.put(.integer(2))
    #expect(!stream.hasRoom)
    #expect(read(one) == [1, 2])
    #expect(!stream.hasRoom)
    #expect(read(other, 1) == [1])
    #expect(stream.hasRoom)
    other.close()
    #expect(stream.unread == 0)
    #expect(stream.isRead)
    one.close()
    #expect(!stream.isRead)
    #expect(stream.hasRoom)
  }

  @Test("Writers that wait get room one after another, and those that were stopped don't")
  func writers() {
    let stream = ItemStream(limit: 1)
    let reader = stream.makeReader()
    stream.put(.integer(0))
    let waiters = (1...3).map { number in stream.whenRoom { stream.put(.integer(number)) } }
    stream.stopWaiting(waiters[1])
    #expect(stream.unread == 1)
    #expect(read(reader) == [0, 1, 3])
    stream.put(.integer(4))
    var isCalled = false
    stream.whenRoom { isCalled = true }
    reader.close()
    #expect(isCalled)
  }

  @Test(
    "An error of the writer is what a reader gets next; after the end come the items that are left")
  func ends() {
    let (ended, failed) = (ItemStream(limit: 8), ItemStream(limit: 8))
    let readers = [ended.makeReader(), failed.makeReader()]
    defer { for reader in readers { reader.close() } }
    for stream in [ended, failed] { stream.put(.integer(1)) }
    ended.end()
    failed.end(FlowError(.error, "gone"))
    #expect(read(readers[0]) == [1])
    guard case .end = readers[0].next(), case .failed(let error) = readers[1].next() else {
      Issue.record("other ends")
      return
    }
    #expect(error.message == "gone")
  }

  @Test("Items for which writers wait at the end are written, unless the writer has failed")
  func waitingAtTheEnd() {
    let (ended, failed) = (ItemStream(limit: 1), ItemStream(limit: 1))
    let readers = [ended.makeReader(), failed.makeReader()]
    defer { for reader in readers { reader.close() } }
    for stream in [ended, failed] {
      for number in 1...3 {
        if stream.hasRoom {
          stream.put(.integer(1))
        } else {
          stream.whenRoom { stream.put(.integer(Int64(number))) }
        }
      }
    }
    ended.end()
    failed.end(FlowError(.error, "gone"))
    #expect(read(readers[0]) == [1, 2, 3])
    #expect(failed.count == 1)
    #expect(readers[1].failure?.message == "gone")
  }

  @Test("The list of all items is there also without readers")
  func list() {
    let stream = ItemStream(limit: 1, collects: true)
    for number in 1...5 { stream.put(.integer(Int64(number))) }
    #expect(stream.hasRoom)
    stream.end()
    #expect(stream.takeAll()?.count == 5)
  }
}
