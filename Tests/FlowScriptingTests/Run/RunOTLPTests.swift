import FlowEngine
import FlowScripting
import Testing

@Suite("Spans for OpenTelemetry")
struct RunOTLPTests {
  @Test("Spans are divided into texts that are whole by themselves")
  func spansAreDividedIntoTexts() throws {
    let loop = FlowEventLoop()
    var flow = Flow("publish")
    _ = (1...50).map { flow = flow.add(Op("Op\($0)") { _ in }) }
    let spans = [RunSpans(flow.start(on: loop))]
    let resource = TraceResource(title: "a \"b\"", environment: { _ in nil }, hiding: loop.secrets)
    let trace = TraceContext()
    let whole = RunOTLP.text(of: spans, trace, resource).description
    let parts = RunOTLP.texts(of: spans, trace, resource, limit: 2000).map(\.description)
    let head = "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\","
    #expect(parts.count > 5)
    #expect(parts.allSatisfy { $0.hasPrefix(head) && $0.hasSuffix("]}]}]}\n") })
    // One line, as JSON Lines have it.
    #expect(parts.allSatisfy { $0.firstIndex(of: "\n") == $0.indices.last })
    func count(_ text: String) -> Int { text.ranges(of: "\"spanId\":").count }
    #expect(parts.map(count).reduce(0, +) == 51)
    #expect(count(whole) == 51)
    #expect(whole.contains("{\"stringValue\":\"a \\\"b\\\"\"}"))
    let nothing = RunOTLP.texts(of: [], trace, resource, limit: 10).map(\.description)
    #expect(nothing.count == 1 && nothing[0].hasSuffix("\"spans\":[]}]}]}\n"))
    loop.shutdown()
  }

  @Test("The service and its attributes are those of the environment")
  func theServiceIsThatOfTheEnvironment() {
    func attributes(_ variables: [String: ByteString]) -> [String: String] {
      let resource = TraceResource(
        title: "x.lua", environment: { variables[$0] }, hiding: FlowEventLoop().secrets)
      return Dictionary(
        resource.attributes.map { ($0.name.description, $0.value.description) }
      ) { first, _ in first }
    }
    #expect(attributes([:])["service.name"] == "x.lua")
    let named = attributes([
      "OTEL_RESOURCE_ATTRIBUTES": "service.name=a,k=1, l = b%20c%3d ,k=2,=3,z"
    ])
    #expect(named["service.name"] == "a" && named["k"] == "2" && named["l"] == "b c=")
    #expect(named["z"] == nil && named[""] == nil)
    let both = attributes([
      "OTEL_SERVICE_NAME": "b", "OTEL_RESOURCE_ATTRIBUTES": "service.name=a",
    ])
    #expect(both["service.name"] == "b")
  }
}
