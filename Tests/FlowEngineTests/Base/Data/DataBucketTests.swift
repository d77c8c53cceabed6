import FlowEngine
import Testing

@Suite("Data buckets")
struct DataBucketTests {
  @Test("A bucket behaves as an ordered list of any size")
  func behavesAsAnOrderedListOfAnySize() {
    let seed = UInt64.random(in: 0...(.max))
    print("bucket seed: \(seed)")
    var random = SeededGenerator(state: seed)
    let keys = KeyTable()
    for size in [4, 12, 13, 14, 40] {
      let bucket = DataBucket(keys: keys)
      var model: [(name: ByteString, value: Int64)] = []
      for step in 0..<2000 {
        let name = ByteString("k\(Int.random(in: 0..<size, using: &random))")
        let place = model.firstIndex { $0.name == name }
        if Int.random(in: 0..<3, using: &random) == 0 {
          let old = bucket.remove(keys.intern(name))
          #expect((old == nil) == (place == nil))
          if let place { model.remove(at: place) }
        } else {
          bucket.set(keys.intern(name), .integer(Int64(step)))
          if let place {
            model[place].value = Int64(step)
          } else {
            model.append((name, Int64(step)))
          }
        }
        let found = bucket.entries.map { "\(keys.name(of: $0.key))=\($0.value.logText)" }
        if found != model.map({ "\($0.name)=\($0.value)" }) {
          Issue.record("seed \(seed), size \(size), step \(step)")
          return
        }
        #expect(bucket.count == model.count)
      }
    }
  }

  @Test("A member's bucket reads the flow's data and writes only to itself")
  func readsThroughAndWritesToItself() {
    let keys = KeyTable()
    let parent = DataBucket(keys: keys)
    parent.set(keys.intern("a"), .integer(1))
    let child = DataBucket(keys: keys, parent: parent)
    #expect(child.integer("a") == 1)
    child.set(keys.intern("a"), .integer(2))
    #expect(child.integer("a") == 2)
    #expect(parent.integer("a") == 1)
    child.remove(keys.intern("a"))
    #expect(child.integer("a") == 1)
    #expect(child.ownValue(of: keys.intern("a")) == nil)
  }

  @Test("Typed access never mistakes one type for another")
  func typedAccessTakesNothingForAnother() {
    let keys = KeyTable()
    let bucket = DataBucket(keys: keys)
    bucket.set(keys.intern("n"), .number(2))
    bucket.set(keys.intern("i"), .integer(3))
    bucket.set(keys.intern("raw"), .bytes(ByteString([0xFF])))
    #expect(bucket.integer("n") == nil)
    #expect(bucket.number("i") == 3)
    #expect(bucket.string("raw") == nil)
    #expect(bucket.value("raw", as: ByteString.self) == ByteString([0xFF]))
    #expect(bucket.boolean("absent") == nil)
  }
}
