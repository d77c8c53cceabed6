@_spi(Scripting) import FlowEngine
import Testing

@Suite("Encodable and decodable types as values")
struct CodableTests {
  private enum Plan: String, Codable, Equatable { case free, pro }

  private enum Shape: Codable, Equatable {
    case circle(radius: Double)
    case point
  }

  private struct Item: Codable, Equatable {
    var name: String
    var count: Int
    var price: Double?
  }

  private struct Order: Codable, Equatable {
    var id: UInt64
    var items: [Item]
    var tags: [String: Bool]
    var plan: Plan
    var shapes: [Shape]
    var note: String?
    var holes: [Int?]
    var raw: ByteString
    var any: FlowValue
  }

  private static var order: Order {
    Order(
      id: 7, items: [Item(name: "pear", count: 3, price: 0.5), Item(name: "fig", count: 1)],
      tags: ["urgent": true], plan: .pro, shapes: [.circle(radius: 2), .point], note: nil,
      holes: [1, nil, 3], raw: ByteString([0xFF, 0]), any: ["x": [1, 2.5, "y"]])
  }

  private static var orderValue: FlowValue {
    [
      "id": 7,
      "items": [["name": "pear", "count": 3, "price": 0.5], ["name": "fig", "count": 1]],
      "tags": ["urgent": true], "plan": "pro",
      "shapes": [["circle": ["radius": 2.0]], ["point": [:]]],
      "holes": [1, .jsonNull, 3], "raw": .bytes(ByteString([0xFF, 0])),
      "any": ["x": [1, 2.5, "y"]],
    ]
  }

  /// The text of the error with which a value isn't decoded.
  private func problem<Content: Decodable>(
    _ value: FlowValue, as type: Content.Type
  ) -> ByteString {
    do {
      _ = try value.decoded(as: type)
      return "decoded"
    } catch {
      return FlowError.from(error).message
    }
  }

  /// The text of the error with which something isn't encoded.
  private func problem(_ content: some Encodable) -> ByteString {
    do {
      _ = try FlowValue(encoding: content)
      return "encoded"
    } catch {
      return FlowError.from(error).message
    }
  }

  @Test("A structure becomes a table, and the table the same structure")
  func structures() throws {
    let value = try FlowValue(encoding: Self.order)
    #expect(value == Self.orderValue)
    #expect(try value.decoded() == Self.order)
  }

  @Test("Integers and floats are kept apart, exactly")
  func numbers() throws {
    #expect(try FlowValue(encoding: Int64.min) == .integer(.min))
    #expect(try FlowValue(encoding: UInt64(Int64.max)) == .integer(.max))
    #expect(try FlowValue(encoding: 3.0) == .number(3))
    #expect(try FlowValue(encoding: Float(0.1)) == .number(Double(Float(0.1))))
    #expect(try FlowValue(encoding: -0.0).decoded(as: Double.self).sign == .minus)
    let nan = try FlowValue(encoding: Double.nan).decoded(as: Double.self)
    #expect(nan.isNaN)
    #expect(try FlowValue(encoding: Double.infinity).decoded(as: Float.self) == .infinity)
    #expect(try FlowValue.integer(3).decoded(as: Double.self) == 3)
    #expect(try FlowValue.number(0.1).decoded(as: Float.self) == 0.1)
    #expect(problem(.number(3), as: Int.self) == "integer expected, got float")
    #expect(problem(.bytes("3"), as: Int.self) == "integer expected, got string")
    #expect(problem(.integer(300), as: Int8.self) == "Int8 expected, got integer")
    #expect(problem(.integer(-1), as: UInt64.self) == "UInt64 expected, got integer")
    #expect(
      problem(.integer(0x20_0000_0000_0001), as: Double.self) == "Double expected, got integer")
    #expect(problem(.number(1e300), as: Float.self) == "Float expected, got float")
    #expect(problem(.integer(1), as: Bool.self) == "boolean expected, got integer")
  }

  @Test("An error names the path, what was expected, and the type of what is there")
  func paths() throws {
    var value = Self.orderValue
    if case .opaque(let table) = value, let map = table as? MapValue {
      map.set("items", [["name": "pear", "count": 3], ["name": "fig", "count": "one"]])
    }
    #expect(problem(value, as: Order.self) == "items[2].count: integer expected, got string")
    #expect(
      problem(["name": "fig"], as: Item.self) == "count: integer expected, got nothing")
    #expect(problem(["a": 1], as: [Int].self) == "list expected, got table")
    #expect(problem([1, 2], as: Plan.self) == "string expected, got table")
    #expect(problem("gold", as: Plan.self) == "Plan expected, got string")
    #expect(
      problem(.bytes(ByteString([0xFF])), as: String.self)
        == "string in UTF-8 expected, got another string")
    value = .secret("hidden")
    #expect(problem(value, as: Int.self) == "integer expected, got string")
  }

  @Test("What has no form in a bucket is an error with its path")
  func unencodable() {
    #expect(
      problem(["ids": [UInt64.max]])
        == "ids[1]: 18446744073709551615 doesn't fit in an integer of 64 bits with a sign")
    final class Node: Encodable {
      var next: Node?
    }
    let first = Node()
    var last = first
    for _ in 0..<300 {
      last.next = Node()
      last = last.next ?? last
    }
    #expect(problem(first).description.hasSuffix("nested deeper than 200 levels"))
  }

  @Test("A type that encodes itself as a value becomes that value, unchanged")
  func wrappers() throws {
    struct Wrapper: Encodable {
      let value: FlowValue
      func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
    }
    let table: FlowValue = ["secret": .secret("x"), "list": [[1], .jsonNull]]
    let encoded = try FlowValue(encoding: ["a": Wrapper(value: table)])
    #expect(encoded == ["a": table])
    #expect(encoded["a"]?["secret"]?.isSecret == true)
  }

  @Test("A table that is nested without end is refused")
  func endless() {
    final class Node: Decodable {
      var next: Node?
    }
    let knot = MapValue()
    knot.set("next", .opaque(knot))
    #expect(
      problem(.opaque(knot), as: Node.self).description.hasSuffix("nested deeper than 200 levels"))
    knot.set("next", .null)
  }

  @Test("Bytes of collections other than arrays are a string, and a string can be read as bytes")
  func bytes() throws {
    struct Data: Codable, Equatable, Collection {
      var bytes: [UInt8]
      var startIndex: Int { bytes.startIndex }
      var endIndex: Int { bytes.endIndex }
      subscript(index: Int) -> UInt8 { bytes[index] }
      func index(after index: Int) -> Int { index + 1 }

      init(_ bytes: [UInt8]) { self.bytes = bytes }
      init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        bytes = []
        while !container.isAtEnd { bytes.append(try container.decode(UInt8.self)) }
      }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        for byte in bytes { try container.encode(byte) }
      }
    }
    let value = try FlowValue(encoding: ["data": Data([1, 0, 255])])
    #expect(value == ["data": .bytes(ByteString([1, 0, 255]))])
    #expect(try value.decoded() == ["data": Data([1, 0, 255])])
    #expect(
      try FlowValue.bytes(ByteString([1, 0, 255])).decoded() == [UInt8](arrayLiteral: 1, 0, 255))
    #expect(try FlowValue(encoding: [UInt8](arrayLiteral: 1, 2)) == [1, 2])
  }

  @Test("A dictionary with integer keys is a table with integer keys")
  func integerKeys() throws {
    let sparse = try FlowValue(encoding: [5: "a", -1: "b"])
    #expect(sparse[number: 5] == "a")
    #expect(sparse["5"] == nil)
    #expect(sparse.logText == "{-1 = b, 5 = a}")
    #expect(sparse != ["5": "a", "-1": "b"])
    #expect(try sparse.decoded() == [5: "a", -1: "b"])
    #expect(try FlowValue(encoding: [Int8(1): [UInt64(2): true]]).decoded() == [1: [2: true]])
    // Lists have integer keys.
    let list = try FlowValue(encoding: [2: "b", 1: "a"])
    #expect(list == ["a", "b"])
    #expect(list[1] == "b" && list.logText == "{a, b}")
    #expect(try list.decoded() == ["a", "b"])
    #expect(try FlowValue(arrayLiteral: "a", "b").decoded() == [1: "a", 2: "b"])
    // Keys that are texts stay texts.
    #expect(try FlowValue(encoding: ["5": "a"]) == ["5": "a"])
    #expect(try FlowValue(dictionaryLiteral: ("5", "a")).decoded() == [5: "a"])
    let empty = try FlowValue(encoding: [Int: Int]())
    #expect(try empty.decoded() == [Int: Int]())
    #expect(try FlowValue(encoding: [3: nil, 4: 1] as [Int: Int?])[number: 3] == nil)
  }

  @Test("An integer key of a wrong type is an error that names its place")
  func wrongIntegerKeys() throws {
    let table = try FlowValue(encoding: ["limits": [300: "a"]])
    #expect(
      problem(table, as: [String: [Int: Int]].self) == "limits[300]: integer expected, got string")
    #expect(
      problem(table, as: [String: [UInt8: String]].self)
        == "limits: UInt8 expected as key, got another integer")
    #expect(problem(["n": "a"], as: [Int: String].self) == "Int expected as key, got string")
    #expect(problem(["05": "a"], as: [Int: String].self) == "Int expected as key, got string")
    #expect(problem("x", as: [Int: String].self) == "table expected, got string")
    #expect(problem([UInt64.max: 1]).description.hasSuffix("64 bits with a sign"))
    let loop = FlowEventLoop(clock: VirtualClock())
    defer { loop.shutdown() }
    let op = Op("ReadOp") { _ = try $0.value("data", as: [String: [Int: Int]].self) }
    #expect(
      op.start(on: loop, data: ["data": table]).error?.message
        == "<data.limits[300]> in data bucket is <a> with type <string>, but NOT type <integer>.")
    #expect(throws: EncodingError.self) { _ = try InitialData(encoding: [1: 2]) }
  }

  @Test("Integer keys survive copies of a table")
  func copiesOfIntegerKeys() throws {
    let value = try FlowValue(encoding: [1: ["a": 1], 2: ["b": 2], 9: ["c": 3]])
    let copy = try #require(value.plainCopy())
    #expect(copy.tables[0].list.count == 2)
    #expect(copy.flowValue == value)
    #expect(try copy.flowValue.decoded() == [1: ["a": 1], 2: ["b": 2], 9: ["c": 3]])
    #expect(value.fields == nil)
    let mixed = PlainValue(
      .table(0),
      tables: [
        .init(list: [.integer(7)], entries: [.init(key: .bytes("x"), value: .boolean(true))])
      ])
    #expect(mixed.flowValue[number: 1] == 7 && mixed.flowValue["x"] == true)
    #expect(mixed.flowValue.plainCopy() == mixed)
  }

  @Test("A class and its superclass share a table, or have one each")
  func classes() throws {
    class Base: Codable {
      var a = 1
    }
    final class Derived: Base {
      var b = 2
      private enum CodingKeys: CodingKey { case b }

      override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(b, forKey: .b)
        try super.encode(to: container.superEncoder())
      }
    }
    #expect(try FlowValue(encoding: Derived()) == ["a": 1, "b": 2, "super": ["a": 1]])
  }

  @Test("A secret is encoded as a secret, and decoded")
  func secrets() throws {
    struct Login: Codable { var password: FlowSecret<String> }
    let value = try FlowValue(encoding: Login(password: FlowSecret("123456")))
    #expect(value.logPreview == "{password = <redacted>}")
    #expect(try value.decoded(as: Login.self).password.value == "123456")
    #expect(try (["password": "x"] as FlowValue).decoded(as: Login.self).password.value == "x")
  }

  @Test("Data of a run come from a structure, and out as one")
  func runs() throws {
    struct Input: Codable { var article: String, amount: Int }
    struct Result: Codable, Equatable { var article: String, total: Double }
    let loop = FlowEventLoop(clock: VirtualClock())
    defer { loop.shutdown() }
    let op = Op("PriceOp") { context in
      let amount: Int = try context.value("amount")
      context.set("total", Double(amount) * 0.5)
    }
    let run = op.start(on: loop, data: try InitialData(encoding: Input(article: "fig", amount: 3)))
    #expect(run.error == nil)
    #expect(try run.data.decoded() == Result(article: "fig", total: 1.5))
    #expect(throws: EncodingError.self) { _ = try InitialData(encoding: [1, 2]) }
  }

  @Test("An op whose value can't be decoded fails with the line of a wrong type")
  func inAnOp() throws {
    let loop = FlowEventLoop(clock: VirtualClock())
    defer { loop.shutdown() }
    let op = Op("ReadOp") { context in
      let item = try context.value("item", as: Item.self)
      try context.set("copy", item)
    }
    let wrong: FlowValue = ["name": "fig", "count": "one"]
    var run = op.start(on: loop, data: InitialData([("item", wrong)]))
    #expect(run.error?.kind == .mismatchedInput)
    #expect(
      run.error?.message
        == "<item.count> in data bucket is <one> with type <string>, but NOT type <integer>.")
    #expect(run.error?.underlying is DecodingError)
    run = op.start(on: loop, data: InitialData([("item", .secret(wrong))]))
    #expect(
      run.error?.message
        == "<item.count> in data bucket is <<redacted>> with type <string>, but NOT type <integer>."
    )
    run = op.start(on: loop)
    #expect(run.error?.message == "can't find <item> in data bucket")
    run = op.start(on: loop, data: ["item": ["name": "fig", "count": 1] as FlowValue])
    #expect(run.error == nil)
    #expect(try run.data.decoded("copy") == Item(name: "fig", count: 1))
  }

  @Test("An absent value is nil for an op that reads it as an optional, of any form")
  func absentAsAnOptional() {
    final class Session {}
    let loop = FlowEventLoop(clock: VirtualClock())
    defer { loop.shutdown() }
    let op = Op("ReadOp") { context in
      let text = try context.value("text", as: String?.self)
      let item: Item? = try context.value("item")
      let session = try context.object("session", as: Session?.self)
      context.log("\(text == nil) \(item == nil) \(session == nil)")
      context.set("any", try context.value("any", as: FlowValue.self))
    }
    var run = op.start(on: loop)
    // A value that may be any is still one.
    #expect(run.error?.message == "can't find <any> in data bucket")
    #expect(run.events.first { $0.kind == .log }?.message == "true true true")
    run = op.start(
      on: loop,
      data: [
        "text": "x", "item": ["name": "fig", "count": 1] as FlowValue,
        "session": FlowValue.object(Session()), "any": 1,
      ])
    #expect(run.error == nil)
    #expect(run.events.first { $0.kind == .log }?.message == "false false false")
    run = op.start(on: loop, data: ["text": 1])
    #expect(run.error?.kind == .mismatchedInput)
    run = op.start(on: loop, data: ["session": 1])
    #expect(run.error?.kind == .mismatchedInput)
  }

  @Test("Data of mixed types are literals without a conversion wherever data are taken")
  func mixedLiterals() {
    struct InnerOp: TypedOp {
      let count = Input<Int>("count")
      func run(_ data: OpData<InnerOp>) { data.log("\(data.count)") }
    }
    let loop = FlowEventLoop(clock: VirtualClock())
    defer { loop.shutdown() }
    let name = "Ada"
    let outer = Op("OuterOp") { context in
      context.set("made", ["a": 1, "b": "x", "c": [1, "y"]])
      context.start(InnerOp().makeOp(), data: ["count": 2, "name": name])
    }
    let flow = Flow("mixed").add(outer).data(["count": 1, "name": name])
      .data("table", ["n": 3, "s": "x"])
    #expect(flow.check(data: ["a": 1, "b": "x"]) == [])
    let run = flow.start(on: loop, data: ["vat": 0.19, "urgent": true])
    #expect(run.error == nil)
    #expect(run.data["made"] == ["a": 1, "b": "x", "c": [1, "y"]])
    #expect(run.data["table"] == ["n": 3, "s": "x"])
    #expect(InnerOp().start(on: loop, data: ["count": 1, "name": name]).error == nil)
  }

  @Test("Inputs and outputs of typed ops may be Codable, or objects")
  func typedOps() throws {
    final class Session: Sendable {}
    struct BasketOp: TypedOp {
      let item = Input<Item>("item")
      let extra = Input<Item?>("extra")
      let plan = Input("plan", default: Plan.free)
      let session = Input<Session>(object: "session")
      let other = Input<Session?>(object: "other")
      let basket = Output<[String: [Item]]>("basket")
      let same = Output<Session>(object: "same")
      let id = Output<UInt64?>("id")

      func run(_ data: OpData<BasketOp>) {
        data.basket = [data.plan.rawValue: [data.item] + (data.extra.map { [$0] } ?? [])]
        data.same = data.other ?? data.session
      }
    }
    let loop = FlowEventLoop(clock: VirtualClock())
    defer { loop.shutdown() }
    let session = Session()
    let item: FlowValue = ["name": "fig", "count": 1]
    var run = BasketOp().start(
      on: loop, data: ["item": item, "session": FlowValue.object(session)])
    #expect(run.error == nil)
    #expect(run.data["basket"] == ["free": [["name": "fig", "count": 1]]])
    #expect(run.data.object("same", as: Session.self) === session)
    run = BasketOp().start(
      on: loop,
      data: ["item": item, "extra": item, "plan": "pro", "session": FlowValue.object(session)])
    #expect(run.data["basket"] == ["pro": [item, item]])
    let other = Session()
    run = BasketOp().start(
      on: loop,
      data: ["item": item, "session": FlowValue.object(session), "other": FlowValue.object(other)])
    #expect(run.data.object("same", as: Session.self) === other)
    run = BasketOp().start(on: loop, data: ["item": item, "session": 1])
    #expect(
      run.error?.message
        == "<session> in data bucket is <1> with type <integer>, but NOT type <Session>.")
    run = BasketOp().start(on: loop, data: ["item": ["name": "fig"] as FlowValue, "session": 1])
    #expect(
      run.error?.message
        == "<item.count> in data bucket is <nil> with type <nil>, but NOT type <integer>.")
  }
}

extension FlowValue {
  fileprivate var logPreview: ByteString { logText }
}
