@_spi(Scripting) import FlowEngine
import Glibc
import Testing

@Suite("Secrets")
struct SecretTests {
  @Test("A secret is shown nowhere and read in plain text")
  func aSecretIsShownNowhereAndReadPlainly() {
    let loop = makeLoop()
    var read: String?
    let login = Op("LoginOp", needs: ["password": "string"]) { context in
      read = try context.value("password")
    }
    let run = Flow("signup").data(["email": "a@b.c", "password": FlowSecret("123456")])
      .add(login).start(on: loop)
    #expect(
      lines(run) == [
        "[DataBucket] start with:", "email: a@b.c", "password: <redacted>",
        "[LoginOp] WillStart", "[LoginOp] DidFinish: successfully",
        "[DataBucket] end with:", "email: a@b.c", "password: <redacted>",
        "Flow isSuccess: true",
      ])
    #expect(read == "123456")
    #expect(run.data.string("password") == "123456")
  }

  @Test("A key that was set from a secret stays secret")
  func aKeyThatWasSetFromASecretStaysSecret() {
    let loop = makeLoop()
    let op = Op("SetOp") { context in
      context.set("pin", 1)
      context.set("pin", FlowSecret(22))
      context.set("pin", 333)
      context.set("pin", FlowValue.null)
      context.set("pin", 7)
      context.set("other", 333)
    }
    let run = op.start(on: loop)
    #expect(
      body(run) == [
        "[SetOp] WillStart", "[DataBucket] add for pin: 1",
        "[DataBucket] replace for pin: <redacted> -> <redacted>",
        "[DataBucket] replace for pin: <redacted> -> <redacted>",
        "[DataBucket] remove for pin", "[DataBucket] add for pin: <redacted>",
        "[DataBucket] add for other: 333", "[SetOp] DidFinish: successfully",
      ])
    #expect(run.data.integer("pin") == 7)
    #expect(run.data.isSecret(loop.keys.intern("pin")))
    #expect(!run.data.isSecret(loop.keys.intern("other")))
  }

  @Test("Data passed at the start doesn't make a secret key plain")
  func dataOfTheStartDoesNotMakeASecretKeyPlain() {
    let loop = makeLoop()
    let run = Flow().data("password", FlowSecret("of the flow"))
      .start(on: loop, data: InitialData([("password", "of the start".flowValue)]))
    #expect(
      lines(run).filter { $0.contains("password") }
        == Array(repeating: "password: <redacted>", count: 2))
    #expect(run.data.string("password") == "of the start")
  }

  @Test("A mismatch names the type of the secret and not its value")
  func aMismatchNamesTheTypeOfTheSecretAndNotItsValue() {
    let loop = makeLoop()
    let text: ByteString =
      "<password> in data bucket is <<redacted>> with type <integer>, but NOT type <string>."
    let data = InitialData([("password", .secret(.integer(12)))])
    let needing = Op("NeedOp", needs: ["password": "string"]) { _ in }
    let giving = Op("GiveOp", gives: ["password": "string"]) { _ in }
    let asking = Op("AskOp") { _ = try $0.value("password", as: String.self) }
    let requiring = Op("RequireOp") { context in
      _ = context.require(context.bucket.key("password"), try FlowValueType.parse("string"))
    }
    for op in [needing, giving, asking, requiring] {
      let run = op.start(on: loop, data: data)
      #expect(run.error?.message == text, "\(op.name)")
    }
    let group = Flow().addGrouped(asking, GroupDispatcher(input: "password", as: "x"))
      .start(on: loop, data: data)
    #expect(
      group.error?.message == """
        <password> in data bucket is <<redacted>> with type <integer>, but NOT type <any[]>.
        """)
  }

  @Test("Sinks receive no plain secret")
  func sinksGetNoPlainSecret() {
    let sink = Sink()
    let op = Op("SetOp") { context in
      context.set("password", "changed!")
      context.set("other", "has hunter22 in it")
      context.set("harmless", "harmless")
    }
    _ = op.start(
      on: makeLoop(), data: InitialData([("password", .secret("hunter22".flowValue))]),
      sinks: [sink])
    #expect(
      sink.seen == ["start", "replace secret", "set secret", "set string", "finish"])
    #expect(!sink.texts.contains { $0.contains("hunter22") || $0.contains("changed!") })
  }

  @Test("A secret of a run is redacted in all runs of the loop as long as the run exists")
  func whatOneRunHidesAllRunsOfTheLoopHide() {
    let loop = makeLoop()
    let inner = Op("InnerOp") { $0.log("got hunter22") }
    #expect(lines(inner.start(on: loop)).contains("[InnerOp] got hunter22"))
    let outer = Op("OuterOp") { _ in }
    let kept = outer.start(on: loop, data: InitialData([("p", .secret("hunter22".flowValue))]))
    #expect(lines(inner.start(on: loop)).contains("[InnerOp] got <redacted>"))
    #expect(lines(inner.start(on: makeLoop())).contains("[InnerOp] got hunter22"))
    let within = FlowEventLoop(within: loop, clock: VirtualClock())
    loop.standStill(for: within) {
      #expect(lines(inner.start(on: within)).contains("[InnerOp] got <redacted>"))
    }
    let shared = FlowEventLoop(clock: VirtualClock(), secrets: loop.secrets)
    #expect(lines(inner.start(on: shared)).contains("[InnerOp] got <redacted>"))
    withExtendedLifetime(kept) {}
  }

  @Test("Errors of callbacks are redacted")
  func errorsOfCallbacksAreRedactedToo() {
    let loop = makeLoop()
    let fail: (Run) throws -> Void = { _ in throw FlowError(.error, "no hunter22") }
    let early = Flow().data("p", FlowSecret("hunter22")).willStart(fail).start(on: loop)
    #expect(early.error?.message == "no <redacted>")
    let late = Flow().data("p", FlowSecret("hunter22")).didFinish(fail).start(on: loop)
    #expect(late.lateErrors.map(\.message) == ["no <redacted>"])
  }

  @Test("A secret of a secret is that secret, and a secret of nil is nil")
  func aSecretOfASecretIsThatSecretAndOneOfNothingIsNothing() {
    let once = FlowValue.secret(.integer(1234))
    guard case .opaque(let value) = FlowValue.secret(once), case .opaque(let first) = once else {
      Issue.record("no secret")
      return
    }
    #expect(value === first)
    #expect(once.plain.logText == "1234")
    #expect(SecretValue(once).plain.logText == "1234")
    #expect(FlowValue.secret(.null).isNull)
    #expect(once.typeName == "secret" && once.logText == "<redacted>")
    #expect(once.plainCopy() == PlainValue(.secret(.integer(1234))))
    #expect(once.plainCopy()?.logText() == "<redacted>")
    #expect(once.plainCopy()?.flowValue.isSecret == true)
    #expect(
      "\(FlowSecret("hunter22")) \(Mirror(reflecting: FlowSecret("x")).children.count)"
        == "<redacted> 0")
    #expect(FlowSecret<String>(flowValue: "plain".flowValue)?.value == "plain")
    #expect(FlowSecret<String>(flowValue: once) == nil)
  }
}

private final class Sink: EventSink {
  var seen: [String] = []
  var texts: [String] = []

  func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) {
    seen.append(event.kind.name.description + (value.map { " \($0.typeName)" } ?? ""))
    texts.append("\(event) \(value?.logText ?? "")")
  }
}
