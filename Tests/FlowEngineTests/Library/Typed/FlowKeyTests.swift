import FlowEngine
import Testing

@Suite("Keys with types")
struct FlowKeyTests {
  private struct Size: Codable, Equatable, Sendable {
    var width = 1
    var height = 2
  }

  private final class Session: Sendable {}

  private enum Keys {
    static let count = FlowKey<Int>("count")
    static let note = FlowKey<String?>("note")
    static let sizes = FlowKey<[Size]>("sizes")
    static let session = FlowKey<Session>(object: "session")
  }

  private struct CountOp: TypedOp {
    let sizes = Input(Keys.sizes)
    let least = Input(Keys.count, default: 5)
    let total = Output(FlowKey<Int>("total"))

    func run(_ data: OpData<Self>) throws {
      data.total = max(data.least, data.sizes.count)
    }
  }

  @Test("One key serves flows, typed ops and the data of runs")
  func uses() throws {
    let loop = FlowEventLoop()
    let session = Session()
    let flow = try Flow("keys") {
      CountOp()
      Op("SetOp") { context in
        try context.set(Keys.session, session)
        try context.set(Keys.count, 7)
      }
    }.data(Keys.sizes, [Size(), Size(width: 3, height: 4)])
    let data = try flow.start(on: loop).wait()
    #expect(data.integer("total") == 5)
    #expect(data[Keys.sizes] == [Size(), Size(width: 3, height: 4)])
    #expect(data[Keys.count] == 7)
    #expect(data[Keys.session] === session)
    #expect(data[Keys.note] == nil)
    #expect(data[FlowKey<Bool>("count")] == nil)
    #expect(flow.check().isEmpty)
  }

  @Test("A content without a form in data is an error that names the key")
  func wrongContent() {
    let error = #expect(throws: FlowError.self) {
      _ = try Flow("keys").data(FlowKey<Mute>("mute"), Mute())
    }
    #expect(error?.message.description.contains("<mute>") == true, "\(error as Any)")
  }

  /// Can't be encoded.
  private struct Mute: Codable, Sendable {
    init() {}
    init(from decoder: any Decoder) throws { throw FlowError(.error, "no") }
    func encode(to encoder: any Encoder) throws {
      throw EncodingError.invalidValue(
        self, .init(codingPath: encoder.codingPath, debugDescription: "mute"))
    }
  }
}
