@_spi(Scripting) import FlowEngine
import Testing

@Suite("Groups")
struct GroupTests {
  let upload = Op("UploadOp", needs: ["image": "string"], gives: ["url": "string"]) { context in
    let image = try context.value("image", as: String.self)
    if image.hasPrefix("bad") { throw FlowError(.error, ByteString("can't upload \(image)")) }
    context.set("url", "url_of_\(image)")
  }

  func uploads(_ images: [String], _ dispatcher: GroupDispatcher, op: Op? = nil) -> Run {
    Flow("uploads").data("images", images).addGrouped(op ?? upload, dispatcher)
      .add(Op("NextOp") { _ in }).start(on: makeLoop())
  }

  @Test("Results are collected in the order of the input")
  func collectsInTheOrderOfTheInput() {
    let run = uploads(["a", "b"], GroupDispatcher(input: "images", output: "urls"))
    #expect(
      body(run) == [
        "[FlowArrayGroupDispatcher] group created: 2", "[UploadOp #1] WillStart",
        "[UploadOp #1] DidFinish: successfully", "[UploadOp #2] WillStart",
        "[UploadOp #2] DidFinish: successfully",
        "[FlowArrayGroupDispatcher] all finished. output size: 2",
        "[DataBucket] add for urls: {url_of_a, url_of_b}", "[NextOp] WillStart",
        "[NextOp] DidFinish: successfully",
      ])
    let events = run.events.filter { $0.kind == .start }.map(\.index)
    #expect(events == [1, 2, 0])
  }

  @Test("A flow that ends early may leave nothing to collect")
  func aFlowThatEndsEarlyMayLeaveNothingToCollect() {
    let flow = Flow("f").needs(["image": "string"]).case("image", "b").add(upload)
    let dispatcher = GroupDispatcher(input: "images", output: "urls", collect: "url")
    let run = uploads(["a", "b", "c"], dispatcher, op: flow)
    #expect(run.data.value("urls", as: [String].self) == ["url_of_b"])
    #expect(body(run).contains("[FlowArrayGroupDispatcher] all finished. output size: 1"))
  }

  @Test("Outputs keep their places whichever item ends first")
  func outputsKeepTheirPlacesWhateverEndsFirst() throws {
    let delays: [Double] = [5, 1, 3, 2, 4]
    let loop = makeLoop()
    let op = Op(name: "SleepOp", primaryInput: "delay", primaryOutput: "slept", body: VaryingBody())
    let run = Flow().data("delays", delays)
      .addGrouped(op, GroupDispatcher(input: "delays", output: "slept", maxConcurrent: 5))
      .start(on: loop)
    try run.wait()
    #expect(run.data.value("slept", as: [Double].self) == delays)
    #expect(run.duration == .seconds(5))
  }

  @Test("The limit max_concurrent is exact", arguments: [1, 2, 3, 7, 100])
  func maxConcurrentIsExact(limit: Int) throws {
    let loop = makeLoop()
    let counter = CountingBody()
    let op = Op(name: "CountOp", primaryInput: "item", body: counter)
    let run = Flow().data("items", Array(0..<20))
      .addGrouped(op, GroupDispatcher(input: "items", maxConcurrent: limit)).start(on: loop)
    try run.wait()
    #expect(counter.most == min(limit, 20))
    #expect(run.duration == .seconds((20 + limit - 1) / limit))
    #expect(body(run).last == "[FlowArrayGroupDispatcher] all finished. output size: 20")
  }

  @Test("The first failure stops the group")
  func theFirstFailureStopsTheGroup() throws {
    let loop = makeLoop()
    let stuck = StuckBody()
    defer { stuck.contexts = [] }
    let op = Op(
      name: "UploadOp", primaryInput: "image", body: FailingBody(fails: "c", otherwise: stuck))
    let run = Flow().data("images", ["a", "b", "c", "d"])
      .addGrouped(op, GroupDispatcher(input: "images", maxConcurrent: 3))
      .add(Op("NextOp") { _ in }).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[FlowArrayGroupDispatcher] group created: 4", "[UploadOp #1] WillStart",
        "[UploadOp #2] WillStart", "[UploadOp #3] WillStart",
        "[UploadOp #3] DidFinish: withError: no",
        "[Group] not allow failure in group. stop immediately.",
        "[UploadOp #1] DidFinish: cancelled: group failed",
        "[UploadOp #2] DidFinish: cancelled: group failed",
      ])
    #expect(run.error?.message == "no")
    #expect(run.state == .failed)
    #expect(stuck.asked.map(\.kind) == [.cancelled, .cancelled])
  }

  @Test("A stopped member ends as cancelled, whatever it returns")
  func aStoppedMemberEndsCancelledWhateverItSays() throws {
    let loop = makeLoop()
    let stuck = StuckBody(endsWhenAsked: false)
    defer { stuck.contexts = [] }
    let op = Op(
      name: "UploadOp", primaryInput: "image", body: FailingBody(fails: "b", otherwise: stuck))
    let run = Flow().data("images", ["a", "b"])
      .addGrouped(op, GroupDispatcher(input: "images")).start(on: loop)
    loop.runUntilIdle()
    #expect(run.state == .pending)
    stuck.contexts[0].end()
    try run.waitUntilEnd()
    #expect(body(run).last == "[UploadOp #1] DidFinish: cancelled: group failed")
    #expect(run.error?.message == "no")
  }

  @Test("With allow_failure failed items are left out")
  func withAllowFailureFailedItemsAreLeftOut() {
    let run = uploads(
      ["a", "bad1", "c", "bad2"],
      GroupDispatcher(input: "images", output: "urls", allowFailure: true, failures: "failed"))
    #expect(run.state == .succeeded)
    #expect(run.data.value("urls", as: [String].self) == ["url_of_a", "url_of_c"])
    #expect(
      Array(body(run).dropFirst(9).prefix(3)) == [
        "[FlowArrayGroupDispatcher] all finished. output size: 2",
        "[DataBucket] add for urls: {url_of_a, url_of_c}",
        "[DataBucket] add for failed: {{error = [uploads/UploadOp #2] can't upload bad1, index = 2, "
          + "input = bad1}, {error = [uploads/UploadOp #4] can't uploa…",
      ])
  }

  @Test("An empty list fails unless allowed")
  func anEmptyListFailsUnlessAllowed() {
    let failed = uploads([], GroupDispatcher(input: "images", output: "urls"))
    #expect(
      body(failed) == [
        "[FlowArrayGroupDispatcher] group created: 0",
        "[Group] no operation to run for group; please make sure the input data: <images> "
          + "is not empty",
      ])
    #expect(failed.error?.kind == .insufficientInput)
    let fine = uploads([], GroupDispatcher(input: "images", output: "urls", allowEmpty: true))
    #expect(
      body(fine).prefix(3) == [
        "[FlowArrayGroupDispatcher] group created: 0",
        "[FlowArrayGroupDispatcher] all finished. output size: 0",
        "[DataBucket] add for urls: {}",
      ])
  }

  @Test("A missing list or a value of another type is an input error of the group")
  func aMissingOrWrongListIsAnInputErrorOfTheGroup() {
    let missing = uploads(["a"], GroupDispatcher(input: "photos"))
    #expect(
      body(missing) == [
        "[Group] DidFinish: withInsufficientInputData: can't find <photos> in data bucket"
      ])
    let wrong = Flow().data("images", 5).addGrouped(upload, GroupDispatcher(input: "images"))
      .start(on: makeLoop())
    #expect(
      body(wrong) == [
        "[Group] DidFinish: withMismatchInputDataType: <images> in data bucket is <5> with type "
          + "<integer>, but NOT type <any[]>."
      ])
    #expect(wrong.error?.kind == .mismatchedInput)
  }

  @Test("A group with impossible options fails with a usage error")
  func anImpossibleGroupFailsWithUsage() {
    let op = Op("PlainOp") { _ in }
    #expect(uploads(["a"], GroupDispatcher(input: "images"), op: op).error?.kind == .usage)
    let none = GroupDispatcher(input: "images", maxConcurrent: 0)
    #expect(uploads(["a"], none).error?.message == "max_concurrent is 0, but must be 1 or more")
  }

  @Test("An item reads the flow's data and writes only to its own")
  func anItemReadsThroughAndWritesOnlyToItself() {
    let loop = makeLoop()
    let op = Op("AddOp", needs: ["item": "integer"]) { context in
      #expect(context.bucket.integer("seen") == nil)
      let sum = try context.value("item", as: Int.self) + context.value("base", as: Int.self)
      context.set("seen", true)
      context.set("base", 0)
      context.set("sum", sum)
    }
    let run = Flow().data("items", [1, 2, 3]).data("base", 100)
      .addGrouped(op, GroupDispatcher(input: "items", output: "sums", collect: "sum"))
      .start(on: loop)
    #expect(run.data.value("sums", as: [Int].self) == [101, 102, 103])
    #expect(run.data.integer("base") == 100)
    #expect(run.data.count == 3)
  }

  @Test("A success without its output is a failure")
  func aSuccessWithoutItsOutputIsAFailure() {
    let op = Op("EmptyOp", primaryInput: "image", primaryOutput: "url") { _ in }
    let run = uploads(["a"], GroupDispatcher(input: "images", output: "urls"), op: op)
    #expect(
      body(run)[2]
        == "[EmptyOp #1] DidFinish: withMissingOutputData: can't find <url> in data bucket")
    #expect(body(run)[3] == "[Group] not allow failure in group. stop immediately.")
  }

  @Test("A flow can be the member of a group")
  func aFlowAsMemberWorksOnTheItem() throws {
    let inner = Flow("inner").needs(["image": "string"]).add(waitingOp("WaitOp")).add(upload)
    let loop = makeLoop()
    let run = Flow().data("images", ["a", "bad", "c"])
      .addGrouped(
        inner,
        GroupDispatcher(
          input: "images", output: "urls", allowFailure: true, as: "image", collect: "url")
      ).start(on: loop)
    try run.waitUntilEnd()
    #expect(run.data.value("urls", as: [String].self) == ["url_of_a", "url_of_c"])
    #expect(body(run).contains("[inner #2] DidFinish: withError: can't upload bad"))
    #expect(run.duration == .seconds(1))
  }

  @Test("A failing group stops flows and groups within")
  func aFailingGroupStopsFlowsAndGroupsWithin() throws {
    let loop = makeLoop()
    let stuck = StuckBody()
    defer { stuck.contexts = [] }
    let innermost = Op(name: "StuckOp", primaryInput: "x", body: stuck)
    let inner = Flow("inner").data("list", [1, 2])
      .addGrouped(innermost, GroupDispatcher(input: "list"))
    let picker = Op(
      name: "PickOp", primaryInput: "item",
      body: FailingBody(key: "item", fails: "b", otherwise: nil))
    let member = Flow("member").add(picker).add(inner)
    let run = Flow().data("items", ["a", "b", "c"])
      .addGrouped(member, GroupDispatcher(input: "items", maxConcurrent: 2, as: "item"))
      .start(on: loop)
    try run.waitUntilEnd()
    #expect(stuck.asked.count == 2)
    #expect(
      Array(body(run).suffix(6)) == [
        "[member #2] DidFinish: withError: no",
        "[Group] not allow failure in group. stop immediately.",
        "[member #1/StuckOp #1] DidFinish: cancelled: group failed",
        "[member #1/StuckOp #2] DidFinish: cancelled: group failed",
        "[member #1/inner] DidFinish: cancelled: group failed",
        "[member #1] DidFinish: cancelled: group failed",
      ])
  }

  @Test("Groups in groups of any depth don't recurse", .smallStack)
  func groupsInGroupsOfAnyDepthDoNotRecurse() throws {
    let loop = makeLoop()
    var flow = Flow("deepest").add(Op("InOp") { _ in })
    var items = FlowValue.integer(0)
    for _ in 0..<Scale.depth {
      flow = Flow("f").addGrouped(flow, GroupDispatcher(input: "item", as: "item"))
      items = .opaque(ListValue([items]))
    }
    let run = flow.start(on: loop, data: InitialData([("item", items)]))
    try run.wait()
    #expect(run.state == .succeeded)
  }

  @Test("Members are created one by one")
  func manyItemsAreMadeOneByOne() throws {
    let loop = makeLoop()
    let op = Op(name: "ItemOp", primaryInput: "item", body: CountingBody(seconds: nil))
    let run = Flow().data("items", Array(0..<Scale.count))
      .addGrouped(op, GroupDispatcher(input: "items")).start(on: loop)
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(run.log.byteCount <= 80 * Scale.count)
    #expect(run.log.recordCount <= 2 * Scale.count + 10)
  }

  @Test("The value absent stands for a missing output")
  func anAbsentValueStandsForWhatHasNoOutput() throws {
    let loop = FlowEventLoop()
    let op = Op("MaybeOp", needs: ["n": "integer"], gives: ["s": "string?"]) { context in
      let n = context.bucket.integer("n") ?? 0
      if n == 3 { throw FlowError(.error, "no") }
      if n == 2 { context.set("s", "two") }
    }
    func outputs(_ absent: FlowValue?) throws -> [String] {
      let flow = Flow("f").data("ns", [1, 2, 3])
        .addGrouped(
          op,
          GroupDispatcher(input: "ns", output: "out", allowFailure: true, absent: absent))
      let run = flow.start(on: loop)
      try run.waitUntilEnd()
      guard case .opaque(let list)? = run.data.get(loop.keys.intern("out")),
        let count = list.listCount()
      else { return [] }
      return (0..<count).map { list.element(at: $0).logText.description }
    }
    #expect(try outputs(nil) == ["two"])
    #expect(try outputs(.integer(0)) == ["0", "two", "0"])
    let lost = Flow("f").data("ns", [1]).addGrouped(
      op, GroupDispatcher(input: "ns", absent: .integer(0)))
    let run = lost.start(on: loop)
    #expect(run.error?.message.description.contains("but no output") == true)
    run.markObserved()
  }
}

/// Sleeps for the seconds in `delay`.
final class VaryingBody: OpBody {
  func start(_ context: OpContext) -> CallState {
    let delay = context.bucket.number("delay") ?? 0
    let loop = context.loop
    loop.schedule(after: .seconds(delay)) {
      context.set("slept", delay)
      context.end()
    }
    return .suspended
  }
}

/// Fails for one item, and does what another body does for the others.
final class FailingBody: OpBody {
  private let key: ByteString
  private let fails: String
  private let otherwise: (any OpBody)?

  init(key: ByteString = "image", fails: String, otherwise: (any OpBody)?) {
    self.key = key
    self.fails = fails
    self.otherwise = otherwise
  }

  func start(_ context: OpContext) -> CallState {
    guard context.bucket.string(key.description) == fails else {
      return otherwise?.start(context) ?? .finished
    }
    context.fail(FlowError(.error, "no"))
    return .finished
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    otherwise?.cancel(context, error)
  }
}
