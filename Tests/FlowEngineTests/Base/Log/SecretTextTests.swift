@testable import FlowEngine
import Glibc
import Testing

@Suite("Secrets in lines of text")
struct SecretTextTests {
  @Test("The text of a secret is replaced in every line")
  func theTextOfASecretIsReplacedInEveryLine() {
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
      data: InitialData([
        ("p", .secret("hunter22".flowValue)), ("q", .secret(98765.flowValue)),
        ("r", .secret("abc".flowValue)),
      ]))
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

  @Test("Overlapping secrets leave no rest")
  func secretsThatOverlapLeaveNothing() {
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

  @Test("The longer of two secrets is replaced whole")
  func ofTwoSecretsTheLongerIsReplacedWhole() {
    let log = makeLoop()
    for text in ["tokenB", "tokenA-long-one", "tokenA", "tokenA-long"] {
      log.hide(text.flowValue)
    }
    #expect(log.logged("tokenA-long-two") == "<redacted>-two")
    #expect(log.logged("tokenA-long-one!") == "<redacted>!")
    #expect(log.logged("tokenA-") == "<redacted>-")
    #expect(log.logged("tokenC") == "tokenC")
  }

  @Test("A long secret is replaced whole and quickly")
  func aLongSecretIsReplacedWholeAndInTime() {
    let log = makeLoop()
    let long = String(repeating: "a", count: 20_000)
    log.hide((long + "x").flowValue)
    log.hide((long + "y").flowValue)
    #expect(log.logged("<\(long)x>") == "<<redacted>>")
    #expect(log.logged("<\(long)y>") == "<<redacted>>")
    let text = String(repeating: "a", count: 50_000)
    #expect(log.logged(text) == "<redacted>")
  }

  @Test("The placeholder for secrets isn't a secret")
  func theWordThatStandsForSecretsIsNoSecret() {
    let log = makeLoop()
    log.hide("redacted".flowValue)
    log.hide("hunter22".flowValue)
    #expect(log.logged("redacted hunter22") == "redacted <redacted>")
  }

  @Test("The end or the middle of a secret in a place that Lua has shortened is replaced")
  func shortenedPlacesShowNoPartOfASecret() {
    let secrets = SecretTexts()
    func secret(_ number: Int, _ count: Int) -> String {
      let letters = (0..<count).map {
        UInt8(97 + ($0 * 7 + number * 3 + $0 / 26 + $0 * number) % 26)
      }
      return String(decoding: letters, as: UTF8.self)
    }
    let texts = (0..<40).map { secret($0, 5 + $0 * 9) }
    // Added before and after the first search.
    for text in texts.dropLast(5) { secrets.add(.bytes(ByteString(text))) }
    let filler = String(repeating: "/", count: 60)
    let harmless = "...\(filler.prefix(56)):1:"
    #expect(secrets.redacted(ByteString(harmless)).description == harmless)
    for text in texts.suffix(5) { secrets.add(.bytes(ByteString(text))) }
    for text in texts {
      for start in 1..<text.count - 3 {
        let part = text.dropFirst(start).prefix(56)
        let line = "...\(part)\(filler.prefix(56 - part.count)):1: boom"
        let shown = secrets.redacted(ByteString(line)).description
        #expect(shown.hasPrefix("...<redacted>"), "\(line)")
        #expect(shown.hasSuffix(":1: boom"), "\(line)")
      }
    }
    // Three bytes occur by chance.
    let line = "...\(texts[3].suffix(3))\(filler.prefix(53)):1: boom"
    #expect(secrets.redacted(ByteString(line)).description == line)
  }

  @Test("However many secrets there are, few of their places are kept to find parts of them")
  func fewPlacesOfSecretsAreKept() {
    let parts = SecretParts()
    var bytes = 0
    for number in 0..<1000 {
      let text = ByteString(String(repeating: "secret \(number) ", count: 40))
      parts.add(text)
      bytes += text.count
    }
    let wanted = Array("nowhere".utf8) + [UInt8](repeating: 0, count: 49)
    wanted.withUnsafeBufferPointer { #expect(parts.longestMatch(with: $0) == nil) }
    #expect(parts.placeCount > 0)
    #expect(parts.placeCount <= bytes / 16 + 1000)
  }

  @Test("A shortened table shows no beginning of a secret")
  func theCutOfALongTableShowsNoBeginningOfASecret() {
    let loop = makeLoop()
    let secret = "0123456789abcdefghij"
    for count in 80...118 {
      let op = Op("SetOp") { context in
        context.set("list", [String(repeating: "x", count: count), secret])
      }
      let run = op.start(on: loop, data: InitialData([("p", .secret(secret.flowValue))]))
      let shown = run.events.compactMap(\.value).last?.description ?? ""
      #expect(!shown.contains("0123"), "\(count): \(shown)")
      #expect(shown.count <= 120)
    }
  }

  @Test("The time for a line doesn't grow with the number of secrets")
  func aLineTakesNoLongerWithMoreSecrets() {
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

  @Test("The beginning of a secret before an omission is replaced")
  func theBeginningOfASecretBeforeAnOmissionIsReplacedToo() {
    let secrets = SecretTexts()
    secrets.add("hunter22-correct-horse".flowValue)
    #expect(secrets.redacted("{a, hunter22-c…} with") == "{a, <redacted>…} with")
    #expect(
      secrets.redacted("[string \"p = 'hunter22...\"]:1: boom")
        == "[string \"p = '<redacted>...\"]:1: boom")
    #expect(secrets.redacted("hunter22-c and hunt") == "hunter22-c and hunt")
    #expect(secrets.redacted("hun…") == "hun…")
  }
}

extension EventLoop {
  fileprivate func hide(_ value: FlowValue) { secrets.add(value) }

  /// A line as a log of this loop has it.
  fileprivate func logged(_ line: String) -> String {
    let run = Op("LogOp") { $0.log(ByteString(line)) }.start(on: self)
    return run.events.first { $0.kind == .log }?.message?.description ?? "nothing"
  }
}
