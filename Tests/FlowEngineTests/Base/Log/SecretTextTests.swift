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
    let log = SecretLog()
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
    let log = SecretLog()
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
    let log = SecretLog()
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
    let log = SecretLog()
    log.hide("redacted".flowValue)
    log.hide("hunter22".flowValue)
    #expect(log.logged("redacted hunter22") == "redacted <redacted>")
  }

  @Test("The end or the middle of a secret in a place that Lua has shortened is replaced")
  func shortenedPlacesShowNoPartOfASecret() {
    let secrets = SecretTexts()
    let holds = SecretHolds(secrets, countedIn: nil)
    defer { withExtendedLifetime(holds) {} }
    func secret(_ number: Int, _ count: Int) -> String {
      let letters = (0..<count).map {
        UInt8(97 + ($0 * 7 + number * 3 + $0 / 26 + $0 * number) % 26)
      }
      return String(decoding: letters, as: UTF8.self)
    }
    let texts = (0..<40).map { secret($0, 5 + $0 * 9) }
    // Added before and after the first search.
    for text in texts.dropLast(5) { holds.add(.bytes(ByteString(text))) }
    let filler = String(repeating: "/", count: 60)
    let harmless = "...\(filler.prefix(56)):1:"
    #expect(secrets.redacted(ByteString(harmless)).description == harmless)
    for text in texts.suffix(5) { holds.add(.bytes(ByteString(text))) }
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
    let fewHolds = SecretHolds(few, countedIn: nil)
    let manyHolds = SecretHolds(many, countedIn: nil)
    defer { withExtendedLifetime((fewHolds, manyHolds)) {} }
    for index in 0..<10 { fewHolds.add("token-\(index)-abc".flowValue) }
    // Half of them begin alike, half of them don't.
    for index in 0..<5_000 {
      manyHolds.add("token-\(index)-abc".flowValue)
      manyHolds.add("\(index &* 2_654_435_761 % 999_983)-token".flowValue)
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
    let holds = SecretHolds(secrets, countedIn: nil)
    defer { withExtendedLifetime(holds) {} }
    holds.add("hunter22-correct-horse".flowValue)
    #expect(secrets.redacted("{a, hunter22-c…} with") == "{a, <redacted>…} with")
    #expect(
      secrets.redacted("[string \"p = 'hunter22...\"]:1: boom")
        == "[string \"p = '<redacted>...\"]:1: boom")
    #expect(secrets.redacted("hunter22-c and hunt") == "hunter22-c and hunt")
    #expect(secrets.redacted("hun…") == "hun…")
  }

  @Test("A text is hidden as long as something has it, and so are its other forms")
  func aTextIsHiddenAsLongAsSomethingHasIt() {
    let secrets = SecretTexts()
    var first: SecretHolds? = SecretHolds(secrets, countedIn: nil)
    var second: SecretHolds? = SecretHolds(secrets, countedIn: nil)
    first?.add("hunter 22".flowValue)
    first?.add("hunter 22".flowValue)
    second?.add("hunter 22".flowValue)
    second?.add("hunter 22-long".flowValue)
    secrets.add(form: "hunter%2022", of: "hunter 22")
    secrets.add(form: "nobody%20", of: "nobody ")
    #expect(secrets.redacted("hunter%2022 nobody%20") == "<redacted> nobody%20")
    first = nil
    #expect(secrets.redacted("hunter 22, hunter%2022") == "<redacted>, <redacted>")
    second = nil
    #expect(secrets.redacted("hunter 22-long, hunter%2022") == "hunter 22-long, hunter%2022")
    #expect(secrets.count == 0 && secrets.byteCount == 0)
  }

  @Test("Texts that come and go leave nothing, and the others stay hidden")
  func textsThatComeAndGo() {
    let secrets = SecretTexts()
    let stays = SecretHolds(secrets, countedIn: nil)
    defer { withExtendedLifetime(stays) {} }
    for number in 0..<100 { stays.add("token-\(number)-stays".flowValue) }
    let size = secrets.byteCount
    for number in 0..<5_000 {
      let holds = SecretHolds(secrets, countedIn: nil)
      holds.add("token-\(number)-goes".flowValue)
      #expect(secrets.redacted("token-\(number)-goes") == "<redacted>")
    }
    #expect(secrets.count == 100 && secrets.byteCount == size)
    #expect(secrets.redacted("token-4711-goes") == "token-4711-goes")
    for number in 0..<100 { #expect(secrets.redacted("token-\(number)-stays") == "<redacted>") }
  }

  @Test("The secrets of a run end with it, and those of the runs within it with the outermost")
  func secretsEndWithTheirRun() {
    let loop = makeLoop()
    let inner = Op("InnerOp") { $0.set("token", FlowValue.secret("inner-token")) }
    var run: Run? = Op("OuterOp") { context in
      _ = context.start(inner)
      context.log("inner-token outer-token")
    }.start(on: loop, data: ["key": FlowSecret("outer-token")])
    #expect(run?.events.first { $0.kind == .log }?.message == "<redacted> <redacted>")
    #expect(loop.secrets.count == 2)
    run = nil
    #expect(loop.secrets.count == 0)
  }
}

/// A loop, and secrets that last as long as this.
private final class SecretLog {
  let loop = makeLoop()
  private lazy var holds = SecretHolds(loop.secrets, countedIn: nil)

  func hide(_ value: FlowValue) { holds.add(value) }

  /// A line as a log of this loop has it.
  fileprivate func logged(_ line: String) -> String {
    let run = Op("LogOp") { $0.log(ByteString(line)) }.start(on: loop)
    return run.events.first { $0.kind == .log }?.message?.description ?? "nothing"
  }
}
