@testable import FlowEngine
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

  @Test("A bucket at any depth has the values that are nearest to it, whatever changes above it")
  func hasTheNearestValuesAtAnyDepth() {
    let seed = UInt64.random(in: 0...(.max))
    print("chain seed: \(seed)")
    var random = SeededGenerator(state: seed)
    let keys = KeyTable()
    let names = (0..<4).map { keys.intern("k\($0)") }
    var chain = [DataBucket(keys: keys)]
    var model: [[DataKey: Int64]] = [[:]]
    for step in 0..<20_000 {
      let depth = Int.random(in: 0..<chain.count, using: &random)
      let key = names[Int.random(in: 0..<4, using: &random)]
      switch Int.random(in: 0..<10, using: &random) {
      case 0 where chain.count < 200:
        chain.append(DataBucket(keys: keys, parent: chain[chain.count - 1]))
        model.append([:])
      case 1:
        chain[depth].set(key, .integer(Int64(step)))
        model[depth][key] = Int64(step)
      case 2, 3:
        chain[depth].remove(key)
        model[depth][key] = nil
      default:
        let found = chain[depth].get(key)?.logText
        let wanted = model[...depth].last { $0[key] != nil }?[key].map { "\($0)" as ByteString }
        #expect(found == wanted, "seed \(seed), step \(step)")
        #expect(chain[depth].has(key) == (wanted != nil))
        #expect(chain[depth].kind(of: key) == (wanted == nil ? .absent : .integer))
      }
    }
  }

  @Test("Of many buckets a key is searched in a few: every sixteenth remembers where it was found")
  func everySixteenthBucketRemembersAKey() {
    let keys = KeyTable()
    let key = keys.intern("k")
    var chain = [DataBucket(keys: keys)]
    chain[0].set(key, .integer(1))
    for _ in 0..<1000 { chain.append(DataBucket(keys: keys, parent: chain[chain.count - 1])) }
    #expect(chain[1000].get(key)?.logText == "1")
    let places = chain.indices.filter { chain[$0].rememberedKeys == [key] }
    #expect(places.count == 1000 / 16)
    #expect(zip(places, places.dropFirst()).allSatisfy { $1 - $0 == 16 })
    // A script that looks for ever new keys doesn't fill the memory.
    for number in 0..<1000 { #expect(!chain[1000].has(keys.intern("other \(number)"))) }
    #expect(chain.allSatisfy { $0.rememberedKeys.count <= 64 })
  }

  @Test("A key is secret at any depth below a bucket where it is, and nowhere else")
  func aKeyIsSecretBelowABucketWhereItIs() {
    let keys = KeyTable()
    let (key, other) = (keys.intern("k"), keys.intern("other"))
    var chain = [DataBucket(keys: keys)]
    for _ in 0..<100 { chain.append(DataBucket(keys: keys, parent: chain[chain.count - 1])) }
    let beside = DataBucket(keys: keys, parent: chain[30])
    #expect(!chain[100].isSecret(key))
    chain[40].set(key, .secret(.integer(1)))
    for _ in 0..<2 {
      #expect(chain.indices.filter { chain[$0].isSecret(key) } == Array(40...100))
      #expect(!beside.isSecret(key))
      #expect(!chain[100].isSecret(other))
    }
  }

  @Test("A mask hides keys of the buckets above, and lets the bucket have its own")
  func aMaskHidesKeys() throws {
    let keys = KeyTable()
    let (hidden, shown) = (keys.intern("hidden"), keys.intern("shown"))
    let other = keys.intern("other")
    let outer = DataBucket(keys: keys)
    for key in [hidden, shown, other] { outer.set(key, .integer(1)) }
    let inner = DataBucket(keys: keys, parent: outer)
    for mask in [DataMask([hidden: 0, shown: 0], except: [shown]), DataMask([other: 0])] {
      inner.hide(mask)
      let visible = [hidden, shown, other].filter { !mask.hides($0) }
      #expect([hidden, shown, other].filter { inner.get($0) != nil } == visible)
      #expect(Set(inner.visibleEntries.map(\.entry.key)) == Set(visible))
      let all: [String: Int] = try inner.decoded()
      #expect(Set(all.keys) == Set(visible.map { String(keys.name(of: $0)) }))
      inner.set(hidden, .integer(2))
      #expect(inner.get(hidden)?.logText == "2")
      inner.reset()
      #expect(inner.entries.isEmpty)
      #expect((inner.get(hidden) == nil) == mask.hides(hidden))
    }
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
