import FlowEngine
import Glibc
import Testing

@Suite struct SecretTests {
  @Test func aSecretIsShownNowhereAndReadPlainly() {
    let loop = makeLoop()
    var read: String?
    let login = Op("LoginOp", needs: ["password": "string"]) { context in
      read = try context.value("password")
    }
    let run = Flow("signup").data(["email": "a@b.c", "password": Secret("123456")])
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

  @Test func aKeyThatWasSetFromASecretStaysSecret() {
    let loop = makeLoop()
    let op = Op("SetOp") { context in
      context.set("pin", 1)
      context.set("pin", Secret(22))
      context.set("pin", 333)
      context.set("pin", Value.null)
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

  @Test func dataOfTheStartDoesNotMakeASecretKeyPlain() {
    let loop = makeLoop()
    let run = Flow().data("password", Secret("of the flow"))
      .start(on: loop, data: [("password", "of the start".flowValue)])
    #expect(
      lines(run).filter { $0.contains("password") }
        == Array(repeating: "password: <redacted>", count: 2))
    #expect(run.data.string("password") == "of the start")
  }

  @Test func theTextOfASecretIsReplacedInEveryLine() {
    let loop = makeLoop()
    let op = Op("LeakyOp") { context in
      context.log("using hunter22, twice: hunter22hunter22")
      context.set("url", "https://me:hunter22@host")
      context.set("list", ["a", "hunter22"])
      context.set("hunter22", 1)
      context.set("pin", 98765)
      context.log("hunter2 9876 abc")
      context.fail(FlowError(.error, "no hunter22", traceback: "at hunter22"))
    }
    let run = op.start(
      on: loop,
      data: [
        ("p", .secret("hunter22".flowValue)), ("q", .secret(98765.flowValue)),
        ("r", .secret("abc".flowValue)),
      ])
    #expect(
      body(run) == [
        "[LeakyOp] WillStart",
        "[LeakyOp] using <redacted>, twice: <redacted><redacted>",
        "[DataBucket] add for url: https://me:<redacted>@host",
        "[DataBucket] add for list: {a, <redacted>}",
        "[DataBucket] add for <redacted>: 1",
        "[DataBucket] add for pin: <redacted>",
        // A part of a secret isn't the secret, and three bytes occur by chance.
        "[LeakyOp] hunter2 9876 abc",
        "[LeakyOp] DidFinish: withError: no <redacted>",
      ])
    #expect(run.error?.message == "no <redacted>")
    #expect(run.error?.traceback == "at <redacted>")
    #expect(loop.unobservedFailures.map(\.error.message) == ["no <redacted>"])
    for event in run.events { #expect(!"\(event)".contains("hunter22"), "\(event)") }
  }

  @Test func secretsThatOverlapLeaveNothing() {
    let log = makeLoop()
    log.hide("abcdef".flowValue)
    log.hide("defghi".flowValue)
    log.hide("abcd".flowValue)
    #expect(
      log.logged("-abcdefghi-abcd-abcdefdefghi-") == "-<redacted>-<redacted>-<redacted><redacted>-")
    // Texts that many secrets begin with.
    for index in 1000..<4000 { log.hide("token_\(index)".flowValue) }
    #expect(log.logged("token_1234 token_9999") == "<redacted> token_9999")
    #expect(log.logged("") == "")
    #expect(log.logged("to") == "to")
  }

  @Test func ofTwoSecretsTheLongerIsReplacedWhole() {
    let log = makeLoop()
    for text in ["tokenB", "tokenA-long-one", "tokenA", "tokenA-long"] {
      log.hide(text.flowValue)
    }
    #expect(log.logged("tokenA-long-two") == "<redacted>-two")
    #expect(log.logged("tokenA-long-one!") == "<redacted>!")
    #expect(log.logged("tokenA-") == "<redacted>-")
    #expect(log.logged("tokenC") == "tokenC")
  }

  @Test func aLongSecretIsReplacedWholeAndInTime() {
    let log = makeLoop()
    let long = String(repeating: "a", count: 20_000)
    log.hide((long + "x").flowValue)
    log.hide((long + "y").flowValue)
    #expect(log.logged("<\(long)x>") == "<<redacted>>")
    #expect(log.logged("<\(long)y>") == "<<redacted>>")
    let text = String(repeating: "a", count: 50_000)
    #expect(log.logged(text) == "<redacted>")
  }

  @Test func theWordThatStandsForSecretsIsNoSecret() {
    let log = makeLoop()
    log.hide("redacted".flowValue)
    log.hide("hunter22".flowValue)
    #expect(log.logged("redacted hunter22") == "redacted <redacted>")
  }

  @Test func theCutOfALongTableShowsNoBeginningOfASecret() {
    let loop = makeLoop()
    let secret = "0123456789abcdefghij"
    for count in 80...118 {
      let op = Op("SetOp") { context in
        context.set("list", [String(repeating: "x", count: count), secret])
      }
      let run = op.start(on: loop, data: [("p", .secret(secret.flowValue))])
      let shown = run.events.compactMap(\.value).last?.description ?? ""
      #expect(!shown.contains("0123"), "\(count): \(shown)")
      #expect(shown.count <= 120)
    }
  }

  @Test func aMismatchNamesTheTypeOfTheSecretAndNotItsValue() {
    let loop = makeLoop()
    let text: ByteString =
      "<password> in data bucket is <<redacted>> with type <integer>, but NOT type <string>."
    let data: [(ByteString, Value)] = [("password", .secret(.integer(12)))]
    let needing = Op("NeedOp", needs: ["password": "string"]) { _ in }
    let giving = Op("GiveOp", gives: ["password": "string"]) { _ in }
    let asking = Op("AskOp") { _ = try $0.value("password", as: String.self) }
    let requiring = Op("RequireOp") { context in
      _ = context.require(context.bucket.key("password"), try ValueType.parse("string"))
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

  @Test func secretItemsOfAGroupArePlainInsideAndRedactedOutside() {
    let loop = makeLoop()
    var seen: [String] = []
    let op = Op(
      "UseOp", needs: ["token": "string"], gives: ["url": "string"]
    ) { context in
      let token: String = try context.value("token")
      seen.append(token)
      context.log("with \(ByteString(token))")
      if token == "token-2" { throw FlowError(.error, "bad \(ByteString(token))") }
      context.set("url", token == "plain" ? .bytes("url") : .secret("url-of-it".flowValue))
    }
    let items: Value = .opaque(
      ListValue([.secret("token-1".flowValue), .secret("token-2".flowValue), "plain".flowValue]))
    let run = Flow().data("tokens", items)
      .addGrouped(
        op,
        GroupDispatcher(
          input: "tokens", output: "urls", allowFailure: true, failures: "failed")
      ).start(on: loop)
    #expect(seen == ["token-1", "token-2", "plain"])
    #expect(
      body(run) == [
        "[FlowArrayGroupDispatcher] group created: 3",
        "[UseOp #1] WillStart", "[UseOp #1] with <redacted>",
        "[UseOp #1] DidFinish: successfully",
        "[UseOp #2] WillStart", "[UseOp #2] with <redacted>",
        "[UseOp #2] DidFinish: withError: bad <redacted>",
        "[UseOp #3] WillStart", "[UseOp #3] with plain", "[UseOp #3] DidFinish: successfully",
        "[FlowArrayGroupDispatcher] all finished. output size: 2",
        // One output was a secret, and so the list of them.
        "[DataBucket] add for urls: <redacted>",
        "[DataBucket] add for failed: {{error = [Flow/UseOp #2] bad <redacted>, index = 2, input = <redacted>}}",
      ])
    #expect(lines(run).contains("tokens: {<redacted>, <redacted>, plain}"))
    #expect(run.data["urls"]?.logText == "{url-of-it, url}")
  }

  @Test func theItemsOfASecretListAreSecret() {
    let loop = makeLoop()
    let op = Op("UseOp", needs: ["token": "integer"]) { _ in }
    let run = Flow().data("tokens", .secret(list(["token-1"])))
      .addGrouped(op, GroupDispatcher(input: "tokens")).start(on: loop)
    #expect(
      run.error?.message == """
        <token> in data bucket is <<redacted>> with type <string>, but NOT type <integer>.
        """)
    #expect(!run.summary().description.contains("token-1"))
  }

  @Test func aMemberDoesNotLeaveItsSecretKeysToTheNext() {
    let loop = makeLoop()
    let op = Op("UseOp", needs: ["token": "integer"]) { _ in }
    let items: Value = .opaque(ListValue([.secret("a".flowValue), "b".flowValue]))
    let run = Flow().data("tokens", items)
      .addGrouped(
        op, GroupDispatcher(input: "tokens", maxConcurrent: 1, allowFailure: true, failures: "f")
      ).start(on: loop)
    let ends = lines(run).filter { $0.contains("DidFinish") }
    #expect(ends.count == 2)
    #expect(ends.first?.contains("is <<redacted>> with") == true)
    #expect(ends.last?.contains("is <b> with") == true)
  }

  @Test func sinksGetNoPlainSecret() {
    let sink = Sink()
    let op = Op("SetOp") { context in
      context.set("password", "changed!")
      context.set("other", "has hunter22 in it")
      context.set("harmless", "harmless")
    }
    _ = op.start(
      on: makeLoop(), data: [("password", .secret("hunter22".flowValue))], sinks: [sink])
    #expect(
      sink.seen == ["start", "replace secret", "set secret", "set string", "finish"])
    #expect(!sink.texts.contains { $0.contains("hunter22") || $0.contains("changed!") })
  }

  @Test func whatOneRunHidesAllRunsOfTheLoopHide() {
    let loop = makeLoop()
    let inner = Op("InnerOp") { $0.log("got hunter22") }
    #expect(lines(inner.start(on: loop)).contains("[InnerOp] got hunter22"))
    let outer = Op("OuterOp") { _ in }
    _ = outer.start(on: loop, data: [("p", .secret("hunter22".flowValue))])
    #expect(lines(inner.start(on: loop)).contains("[InnerOp] got <redacted>"))
    #expect(lines(inner.start(on: makeLoop())).contains("[InnerOp] got hunter22"))
    let within = EventLoop(within: loop, clock: VirtualClock())
    loop.standStill(for: within) {
      #expect(lines(inner.start(on: within)).contains("[InnerOp] got <redacted>"))
    }
    let shared = EventLoop(clock: VirtualClock(), secrets: loop.secrets)
    #expect(lines(inner.start(on: shared)).contains("[InnerOp] got <redacted>"))
  }

  @Test func aLineTakesNoLongerWithMoreSecrets() {
    let few = SecretTexts()
    let many = SecretTexts()
    for index in 0..<10 { few.add("token-\(index)-abc".flowValue) }
    // Half of them begin alike, half of them don't.
    for index in 0..<5_000 {
      many.add("token-\(index)-abc".flowValue)
      many.add("\(index &* 2_654_435_761 % 999_983)-token".flowValue)
    }
    let line: ByteString = "PUT https://api.example/items/4711 -> 200 in 0.21s, 14 kB, item 12"
    // Of the processor: other programs may run meanwhile.
    func now() -> Int {
      var time = timespec()
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
      return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
    func time(_ secrets: SecretTexts) -> Int {
      (0..<5).map { _ in
        let begin = now()
        for _ in 0..<200 { _ = secrets.redacted(line) }
        return now() - begin
      }.min() ?? 0
    }
    // A search for one after the other would take a thousand times as long.
    #expect(time(many) < time(few) * 20)
    #expect(many.redacted("a token-4999-abc!") == "a <redacted>!")
    #expect(many.count == 10_000)
  }

  @Test func theBeginningOfASecretBeforeAnOmissionIsReplacedToo() {
    let secrets = SecretTexts()
    secrets.add("hunter22-correct-horse".flowValue)
    #expect(secrets.redacted("{a, hunter22-c…} with") == "{a, <redacted>…} with")
    #expect(
      secrets.redacted("[string \"p = 'hunter22...\"]:1: boom")
        == "[string \"p = '<redacted>...\"]:1: boom")
    #expect(secrets.redacted("hunter22-c and hunt") == "hunter22-c and hunt")
    #expect(secrets.redacted("hun…") == "hun…")
  }

  @Test func errorsOfCallbacksAreRedactedToo() {
    let loop = makeLoop()
    let fail: (Run) throws -> Void = { _ in throw FlowError(.error, "no hunter22") }
    let early = Flow().data("p", Secret("hunter22")).willStart(fail).start(on: loop)
    #expect(early.error?.message == "no <redacted>")
    let late = Flow().data("p", Secret("hunter22")).didFinish(fail).start(on: loop)
    #expect(late.lateErrors.map(\.message) == ["no <redacted>"])
  }

  @Test func aSecretOfASecretIsThatSecretAndOneOfNothingIsNothing() {
    let once = Value.secret(.integer(1234))
    guard case .opaque(let value) = Value.secret(once), case .opaque(let first) = once else {
      Issue.record("no secret")
      return
    }
    #expect(value === first)
    #expect(once.plain.logText == "1234")
    #expect(SecretValue(once).plain.logText == "1234")
    #expect(Value.secret(.null).isNull)
    #expect(once.typeName == "secret" && once.logText == "<redacted>")
    #expect(once.plainCopy() == PlainValue(.secret(.integer(1234))))
    #expect(once.plainCopy()?.logText() == "<redacted>")
    #expect(once.plainCopy()?.flowValue.isSecret == true)
    #expect(
      "\(Secret("hunter22")) \(Mirror(reflecting: Secret("x")).children.count)" == "<redacted> 0")
    #expect(Secret<String>(flowValue: "plain".flowValue)?.value == "plain")
    #expect(Secret<String>(flowValue: once) == nil)
  }
}

private final class Sink: EventSink {
  var seen: [String] = []
  var texts: [String] = []

  func append(_ event: Event, value: Value?, in log: EventLog) {
    seen.append(event.kind.name.description + (value.map { " \($0.typeName)" } ?? ""))
    texts.append("\(event) \(value?.logText ?? "")")
  }
}

extension EventLoop {
  fileprivate func hide(_ value: Value) { secrets.add(value) }

  /// What a log of this loop makes of a line.
  fileprivate func logged(_ line: String) -> String {
    let run = Op("LogOp") { $0.log(ByteString(line)) }.start(on: self)
    return run.events.first { $0.kind == .log }?.message?.description ?? "nothing"
  }
}
