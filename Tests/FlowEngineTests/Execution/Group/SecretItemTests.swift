@_spi(Scripting) import FlowEngine
import Testing

@Suite("Secret items of groups")
struct SecretItemTests {
  @Test("Secret items of a group are plain for the op and redacted in the log")
  func secretItemsOfAGroupArePlainInsideAndRedactedOutside() {
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
    let items: FlowValue = .opaque(
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

  @Test("The items of a secret list are secret")
  func theItemsOfASecretListAreSecret() {
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

  @Test("A member doesn't pass its secret keys to the next")
  func aMemberDoesNotLeaveItsSecretKeysToTheNext() {
    let loop = makeLoop()
    let op = Op("UseOp", needs: ["token": "integer"]) { _ in }
    let items: FlowValue = .opaque(ListValue([.secret("a".flowValue), "b".flowValue]))
    let run = Flow().data("tokens", items)
      .addGrouped(
        op, GroupDispatcher(input: "tokens", maxConcurrent: 1, allowFailure: true, failures: "f")
      ).start(on: loop)
    let ends = lines(run).filter { $0.contains("DidFinish") }
    #expect(ends.count == 2)
    #expect(ends.first?.contains("is <<redacted>> with") == true)
    #expect(ends.last?.contains("is <b> with") == true)
  }
}
