// The nanoseconds, of time and of CPU time, of getting a list of Swift in a script, and of a record as it is encoded and decoded:
//
//   BenchData get|get_small|encode|build|decode|read|pooled|fresh|call|call_at_once|bytes COUNT
//
// `get` gets a list of 100,000 integers by its key, `get_small` one of one integer. `encode` makes values of records by
// Codable, `build` the same by hand; `decode` and `read` make records of them. The others are in Requests.swift.
@_spi(Scripting) import FlowEngine
import FlowScripting
import Glibc
import LuaVM

typealias Taken = (wall: Duration, cpu: Double)

func timed(_ work: () throws -> Void) rethrows -> Taken {
  let begun = clock()
  let wall = try ContinuousClock().measure(work)
  return (wall, Double(clock() - begun) / Double(CLOCKS_PER_SEC))
}

nonisolated(nonsending) func timed(
  _ work: nonisolated(nonsending) () async throws -> Void
) async rethrows -> Taken {
  let (begun, from) = (clock(), ContinuousClock.now)
  try await work()
  return (.now - from, Double(clock() - begun) / Double(CLOCKS_PER_SEC))
}

struct Record: Codable {
  var id: Int
  var name: String
  var price: Double
  var tags: [String]
}

/// The time of a script that gets a list, again and again.
func measureGet(_ size: Int, _ count: Int64) throws -> Taken {
  let host = try ScriptHost(vm: LuaVM())
  defer { host.close() }
  let chunk = try host.vm.load(
    """
    return require("flow").op("GetOp", function(ctx)
      local sum = 0
      for i = 1, ctx:get "count" do sum = sum + ctx:get("list")[1] end
      ctx:set("sum", sum)
    end)
    """, name: "bench")
  guard let op = try host.vm.call(chunk).first.flatMap({ host.op(in: $0) }) else {
    fatalError("no op")
  }
  let list = FlowValue.opaque(ListValue([FlowValue](repeating: 1, count: size)))
  // The first reading makes the table.
  var taken: Taken = (.zero, 0)
  for times in [1, count] {
    taken = try timed {
      let run = op.start(on: host.loop, data: ["list": list, "count": times])
      try run.wait()
      guard run.data.integer("sum") == times else { fatalError("a wrong sum") }
    }
  }
  return taken
}

func makeRecords(_ count: Int64) -> [Record] {
  (0..<Int(count)).map {
    Record(id: $0, name: "record \($0)", price: Double($0) / 4, tags: ["new", "blue"])
  }
}

func build(_ records: [Record]) -> FlowValue {
  let list = ListValue([FlowValue]())
  for record in records {
    list.append(
      .opaque(
        MapValue([
          ("id", .integer(Int64(record.id))), ("name", .bytes(ByteString(record.name))),
          ("price", .number(record.price)),
          ("tags", .opaque(ListValue(record.tags.map { .bytes(ByteString($0)) }))),
        ])))
  }
  return .opaque(list)
}

func read(_ value: FlowValue) -> [Record] {
  guard case .opaque(let list) = value, let count = list.listCount() else { return [] }
  return list.elements(0..<count).compactMap { value in
    guard let id = value["id"].flatMap({ Int(flowValue: $0) }),
      let name = value["name"].flatMap({ String(flowValue: $0) }),
      let price = value["price"].flatMap({ Double(flowValue: $0) }),
      let tags = value["tags"].flatMap({ [String](flowValue: $0) })
    else { return nil }
    return Record(id: id, name: name, price: price, tags: tags)
  }
}

func measure(_ name: String, _ count: Int64) throws -> Taken? {
  var kept: Any?
  defer { withExtendedLifetime(kept) {} }
  switch name {
  case "get": return try measureGet(100_000, count)
  case "get_small": return try measureGet(1, count)
  case "encode":
    let records = makeRecords(count)
    return try timed { kept = try FlowValue(encoding: records) }
  case "build":
    let records = makeRecords(count)
    return timed { kept = build(records) }
  case "decode":
    let value = build(makeRecords(count))
    return try timed { kept = try value.decoded(as: [Record].self) }
  case "read":
    let value = build(makeRecords(count))
    return timed { kept = read(value) }
  default: return nil
  }
}

let words = Array(CommandLine.arguments.dropFirst())
guard words.count == 2, let count = Int64(words[1]), count > 0,
  let taken = try await measureRequests(words[0], count) ?? measure(words[0], count)
else { fatalError("usage: BenchData NAME COUNT") }
print(taken.wall / Duration.nanoseconds(1) / Double(count), taken.cpu * 1e9 / Double(count))
