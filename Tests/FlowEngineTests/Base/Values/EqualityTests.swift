@_spi(Scripting) import FlowEngine
import Testing

@Suite("Equal values, and values written in Swift")
struct EqualityTests {
  @Test("Literals are values of their types")
  func literals() {
    let value: FlowValue = [
      "a": 1, "b": 1.5, "c": true, "d": ["x", .null, [:]], "e": .null, "f": "\(2)",
    ]
    #expect(value["a"] == .integer(1))
    #expect(value["b"] == .number(1.5))
    #expect(value["c"] == .boolean(true))
    #expect(value["d"]?[0] == .bytes("x"))
    #expect(value["d"]?[1] == .null)
    #expect(value["d"]?[3] == nil)
    #expect(value["d"]?[-1] == nil)
    #expect(value["e"] == nil)
    #expect(value["f"] == "2")
    #expect(value["a"]?["b"] == nil)
    #expect(FlowValue(3) == 3)
    #expect(FlowValue(["x"]) == ["x"])
  }

  @Test("Values are equal if their types and contents are")
  func equality() {
    #expect(FlowValue.integer(1) != .number(1))
    #expect(FlowValue.number(.nan) != .number(.nan))
    #expect(FlowValue.number(0) == .number(-0.0))
    #expect(FlowValue.null == .null)
    #expect((["a": 1, "b": 2] as FlowValue) == ["b": 2, "a": 1])
    #expect((["a": 1, "b": 2] as FlowValue) != ["b": 2, "a": 1, "c": 3])
    #expect(([1, [2, [3]]] as FlowValue) == [1, [2, [3]]])
    #expect(([1, [2, [3]]] as FlowValue) != [1, [2, [4]]])
    #expect(([] as FlowValue) == [:])
    #expect(FlowValue.secret("a") == .secret("a"))
    #expect(FlowValue.secret("a") != "a")
    #expect(([.secret("a")] as FlowValue) == [.secret("a")])
    #expect(FlowValue.jsonNull == .jsonNull)
    #expect(FlowValue.jsonNull != .null)
  }

  @Test("Shared and cyclic tables are compared without end")
  func knots() {
    let knots = (0..<2).map { _ in ListValue([.integer(1)]) }
    for knot in knots {
      knot.append(.opaque(knot))
      keepReachable(knot)
    }
    let areEqual = FlowValue.opaque(knots[0]) == .opaque(knots[1])
    #expect(areEqual)
    var shared = ListValue([.integer(1)])
    for _ in 0..<60 { shared = ListValue([.opaque(shared), .opaque(shared)]) }
    var other = ListValue([.integer(2)])
    for _ in 0..<60 { other = ListValue([.opaque(other), .opaque(other)]) }
    let areOthers = FlowValue.opaque(shared) == .opaque(other)
    #expect(!areOthers)
  }

  @Test("An object is equal to itself, and read as what it is")
  func objects() {
    class Animal {}
    final class Cat: Animal, CustomStringConvertible {
      var description: String { "a cat" }
    }
    let cat = Cat()
    #expect(FlowValue.object(cat) == .object(cat))
    #expect(FlowValue.object(cat) != .object(Cat()))
    #expect(FlowValue.object(cat).object(as: Cat.self) === cat)
    #expect(FlowValue.object(cat).object(as: Animal.self) === cat)
    #expect(FlowValue.object(cat).object(as: String.self) == nil)
    #expect(FlowValue.object(cat).typeName == "Cat")
    #expect(FlowValue.object(cat).logText == "a cat")
    #expect(FlowValue.object(cat).plainCopy() == nil)
    #expect(FlowValue.object((1, "x")).object(as: (Int, String).self)?.1 == "x")
  }

  @Test("A run starts with data of mixed types")
  func initialData() {
    let loop = FlowEventLoop(clock: VirtualClock())
    defer { loop.shutdown() }
    let op = Op("ReadOp") { context in context.set("seen", context.bucket["gone"] != nil) }
    let name = "Ada"
    let secret = FlowSecret("hidden")
    var run = op.start(
      on: loop,
      data: [
        "name": name, "n": 1, "x": 1.5, "list": ["a", "b"],
        "mixed": ["n": 1, "s": "t"] as FlowValue,
        "password": secret, "gone": Int?.none,
      ])
    #expect(run.data["mixed"] == ["n": 1, "s": "t"])
    #expect(run.data.value("name") == "Ada")
    #expect(run.data.isSecret(loop.keys.intern("password")))
    #expect(run.data["seen"] == false)
    let dictionary: [String: any FlowValueConvertible] = ["b": 1, "a": "x", "c": [1]]
    run = op.start(on: loop, data: InitialData(dictionary))
    #expect(run.data.entries.map { loop.keys.name(of: $0.key) } == ["a", "b", "c", "seen"])
    run = Flow("own").data(InitialData(dictionary)).add(op).start(on: loop)
    #expect(run.data["c"] == [1])
  }
}
