import FlowEngine
import Testing

/// What a check says, in the form `error UploadOp: sentence`.
func said(_ flow: Flow, data: [(ByteString, Value)]? = nil) -> [String] {
  flow.check(data: data).map { "\($0.severity.name) \($0.op): \($0.message)" }
}

private func op(
  _ name: ByteString, needs: KeyValuePairs<ByteString, ByteString> = [:],
  gives: KeyValuePairs<ByteString, ByteString> = ["other": "any"]
) -> Op {
  Op(name, needs: needs, gives: gives) { _ in Issue.record("a check has run an op") }
}

@Suite("Checking a flow without running it")
struct CheckTests {
  @Test func aFlowInWhichAllIsProvidedHasNoFindings() {
    let flow = Flow("f").needs(["name": "string"]).data("count", Int64(1))
      .add(op("AOp", needs: ["name": "string", "count": "number"], gives: ["x": "string[]"]))
      .add(op("BOp", needs: ["x": "table", "absent": "string?"]))
    #expect(said(flow).isEmpty)
    #expect(said(Flow("empty")).isEmpty)
  }

  @Test func aKeyThatNothingProvidesIsAnErrorAtEachOpThatNeedsIt() {
    let flow = Flow("f")
      .add(op("BOp", needs: ["x": "string", "a": "any"])).add(op("AOp", needs: ["x": "integer"]))
      .add(op("BOp", needs: ["x": "string"]))
    #expect(
      said(flow) == [
        "error BOp: [BOp] needs <a> (any), but nothing before provides it",
        "error BOp: [BOp] needs <x> (string), but nothing before provides it",
        "error AOp: [AOp] needs <x> (integer), but nothing before provides it",
      ])
  }

  @Test func whatComesLaterDoesNotProvide() {
    let flow = Flow("f").add(op("AOp", needs: ["x": "string"])).add(
      op("BOp", gives: ["x": "string"]))
    #expect(said(flow) == ["error AOp: [AOp] needs <x> (string), but nothing before provides it"])
  }

  @Test func whatOneBranchGivesMayBeMissing() {
    func flow() -> Flow {
      Flow("f").needs(["plan": "string"])
        .case("plan", "pro").add(op("ProOp", gives: ["token": "string"]))
    }
    let user = op("UseOp", needs: ["token": "string"])
    let missing =
      "error UseOp: [UseOp] needs <token> (string), but it may be missing: "
    #expect(
      said(flow().otherwise().add(op("FreeOp")).combine().add(user)) == [
        missing + "only [ProOp] gives it, and not on every path"
      ])
    #expect(
      said(
        flow().case("plan", "team").add(op("TeamOp", gives: ["token": "string"])).otherwise()
          .combine().add(user))
        == [missing + "only [ProOp] and [TeamOp] give it, and not on every path"])
    // Without otherwise the flow ends early where no branch gives it.
    #expect(said(flow().combine().add(user)).isEmpty)
    #expect(
      said(
        flow().otherwise().add(op("FreeOp", gives: ["token": "string"])).combine().add(user)
      ).isEmpty)
  }

  @Test func manyProvidersAreCutShort() {
    let flow = Flow("f").needs(["plan": "string"])
    for name in ["AOp", "BOp", "COp", "DOp"] as [ByteString] {
      flow.case("plan", name).add(op(name, gives: ["x": "string"]))
    }
    flow.otherwise().combine().add(op("UseOp", needs: ["x": "string"]))
    #expect(
      said(flow) == [
        "error UseOp: [UseOp] needs <x> (string), but it may be missing: only [AOp], [BOp] and "
          + "others give it, and not on every path"
      ])
  }

  @Test func whatAnOpMayLeaveOutMayBeMissing() {
    let giver = op("AOp", gives: ["x": "string?"])
    #expect(
      said(Flow("f").add(giver).add(op("BOp", needs: ["x": "string"]))) == [
        "error BOp: [BOp] needs <x> (string), but it may be missing: only [AOp] gives it, and not "
          + "on every path"
      ])
    #expect(said(Flow("f").add(giver).add(op("BOp", needs: ["x": "string?"]))).isEmpty)
    #expect(
      said(Flow("f").data("x", "s").add(giver).add(op("BOp", needs: ["x": "string"]))).isEmpty)
  }

  @Test func typesThatCannotBeTheSameClash() {
    let flow = Flow("f").data("seats", "five").add(op("AOp", gives: ["x": "integer|string"]))
      .add(op("BOp", needs: ["seats": "number", "x": "boolean"]))
    #expect(
      said(flow) == [
        "error BOp: [BOp] needs <seats> as number, but the data of flow 'f' holds it as string",
        "error BOp: [BOp] needs <x> as boolean, but [AOp] gives it as integer|string",
      ])
    #expect(
      said(flow, data: [("seats", .number(1.5))]) == [
        "error BOp: [BOp] needs <x> as boolean, but [AOp] gives it as integer|string"
      ])
    #expect(
      said(flow, data: [("seats", .boolean(true))]).first
        == "error BOp: [BOp] needs <seats> as number, but the data given holds it as boolean")
  }

  @Test(
    arguments: [
      ("integer", "number", true), ("number", "float", true), ("integer", "float", false),
      ("string", "any", true), ("any", "string", true), ("string?", "string", true),
      ("string[]", "table", true), ("table", "string[]", true), ("string[]", "any[]", true),
      ("string[]", "integer[]", false), ("integer[]", "number[]", true),
      ("string[]", "string", false),
      ("integer[][]", "integer[]", false), ("A|B", "B|C", true), ("A|B", "C", false),
      ("Account", "Account", true), ("Account", "User", false), ("Account", "table", true),
      ("userdata", "FILE*", true), ("Account", "string", false), ("Account", "any[]", true),
      ("boolean", "integer", false), ("function", "thread", false), ("table", "userdata", false),
      ("string|integer", "integer|boolean", true), ("string|integer", "float", false),
      ("userdata", "string[]", false), ("string|integer[]", "number[]", true),
    ] as [(ByteString, ByteString, Bool)])
  func compatibility(_ given: ByteString, _ needed: ByteString, _ isCompatible: Bool) {
    let flow = Flow("f").needs(["x": needed]).add(op("AOp", gives: ["x": given.present]))
      .add(op("BOp", needs: ["x": needed]))
    #expect(said(flow).isEmpty == isCompatible)
    let back = Flow("f").add(op("AOp", gives: ["x": needed])).add(
      op("BOp", needs: ["x": given]))
    #expect(said(back).isEmpty == isCompatible)
  }

  @Test func aTypeWithAFunctionIsUnknownAndItsFunctionIsNeverCalled() {
    let even = ValueType.predicate(name: "even") { _ in
      Issue.record("a check has called a type's function")
      return "even"
    }
    let giver = Op(name: "AOp", gives: [Declaration("x", even)], body: HoldingBody { _ in })
    let user = Op(
      name: "BOp", needs: [Declaration("x", even), Declaration("y", even)],
      gives: [Declaration("z", even)], body: HoldingBody { _ in })
    let flow = Flow("f").add(giver).add(op("COp", needs: ["x": "string"])).add(user)
    #expect(said(flow, data: [("y", .integer(1))]).isEmpty)
    #expect(said(flow) == ["error BOp: [BOp] needs <y> (even), but nothing before provides it"])
  }

  @Test func afterAnOpThatDeclaresNothingErrorsAreWarnings() {
    let short = Op("ShortOp") { _ in }
    let suffix = ", unless [ShortOp], which declares no gives, sets it"
    let flow = Flow("f").add(op("AOp", needs: ["x": "string"], gives: ["y": "string"])).add(short)
      .add(Op("OtherOp") { _ in })
      .add(op("BOp", needs: ["x": "string", "y": "integer"]))
    #expect(
      said(flow) == [
        "error AOp: [AOp] needs <x> (string), but nothing before provides it",
        "warning BOp: [BOp] needs <x> (string), but nothing before provides it" + suffix,
        "warning BOp: [BOp] needs <y> as integer, but [AOp] gives it as string" + suffix,
      ])
    // In one branch it is before what comes behind; in another one it isn't.
    let branches = Flow("f").needs(["plan": "string"]).case("plan", "a").add(short)
      .otherwise().add(op("BOp", needs: ["x": "string"])).combine()
      .add(op("COp", needs: ["x": "string"]))
    #expect(
      said(branches) == [
        "error BOp: [BOp] needs <x> (string), but nothing before provides it",
        "warning COp: [COp] needs <x> (string), but nothing before provides it" + suffix,
      ])
  }

  // MARK: Cases

  @Test func casesThatCannotMatch() {
    let flow = Flow("f").data("seats", Int64(5)).needs(["plan": "string", "size": "number"])
      .case("plan", "a").case("seats", "5").case("plan", "b").case("plan", "a").case("size", "x")
      .case("team", "t").otherwise()
    #expect(
      said(flow) == [
        "warning Cases: the case seats = 5 can't match: <seats> is never a string, as the data of "
          + "flow 'f' holds it as integer",
        "warning Cases: the case plan = a can't match: an earlier case is the same",
        "warning Cases: the case size = x can't match: <size> is never a string, as flow 'f' needs "
          + "it as number",
        "warning Cases: the case team = t can't match: nothing before provides <team>",
      ])
    // A later block begins anew.
    #expect(
      said(
        Flow("f").needs(["plan": "string"]).case("plan", "a").combine().case("plan", "a")
      ).isEmpty)
    // An op that declares nothing may have set them.
    let open = Flow("f").data("seats", Int64(5)).add(Op("ShortOp") { _ in })
      .case("seats", "5").case("team", "t")
    #expect(said(open).isEmpty)
  }

  @Test func inABranchItsKeyIsThereAndAString() {
    let flow = Flow("f").add(op("AOp", gives: ["plan": "string|integer?"]))
      .case("plan", "a").add(op("BOp", needs: ["plan": "string"])).otherwise().combine()
      .add(op("COp", needs: ["plan": "string?"]))
    #expect(said(flow).isEmpty)
  }

  // MARK: Names

  @Test func namesOfOpsEndInOpThoseOfFlowsNeedNot() {
    let flow = Flow("f").add(op("greet")).add(Flow("inner").add(op("greet")))
      .addGrouped(op("Operation", needs: ["x": "any"]), GroupDispatcher(input: "list"))
    #expect(
      said(flow, data: [("list", ["a"].flowValue)]) == [
        "warning greet: the name [greet] doesn't end in 'Op'",
        "warning Operation: the name [Operation] doesn't end in 'Op'",
      ])
  }

  // MARK: Needs of flows

  @Test func theNeedsOfTheFlowCountAsGivenUnlessDataIsGiven() {
    let flow = Flow("f").needs(["name": "string", "nick": "string?", "seats": "integer"])
      .data("seats", "many").add(op("AOp", needs: ["name": "integer", "nick": "string"]))
    let clash =
      "error f: flow 'f' needs <seats> as integer, but the data of flow 'f' holds it as string"
    #expect(
      said(flow) == [
        clash,
        "error AOp: [AOp] needs <name> as integer, but flow 'f' needs it as string",
        "error AOp: [AOp] needs <nick> (string), but it may be missing: flow 'f' declares it as "
          + "optional",
      ])
    #expect(
      said(flow, data: []) == [
        "error f: flow 'f' needs <name> (string), but neither the data given nor its own has it",
        clash,
        "error AOp: [AOp] needs <name> as integer, but flow 'f' needs it as string",
        "error AOp: [AOp] needs <nick> (string), but nothing before provides it",
      ])
    #expect(
      said(flow, data: [("name", .integer(1)), ("nick", .bytes("n")), ("seats", .integer(1))]) == [
        "error f: flow 'f' needs <name> as string, but the data given holds it as integer"
      ])
  }

  @Test func aNestedFlowNeedsAndItsDataFillsAbsentKeys() {
    let inner = Flow("inner").needs(["x": "string", "y": "string"]).data("y", "own")
      .data("z", "own")
      .add(op("BOp", needs: ["x": "string", "y": "string", "z": "string"]))
    #expect(
      said(Flow("f").add(inner).add(op("COp", needs: ["x": "string", "y": "string"]))) == [
        "error inner: flow 'inner' needs <x> (string), but nothing before provides it",
        "error COp: [COp] needs <x> (string), but nothing before provides it",
      ])
    let filled = Flow("f").add(op("AOp", gives: ["x": "string", "z": "integer"])).add(inner)
    #expect(
      said(filled) == ["error BOp: [BOp] needs <z> as string, but [AOp] gives it as integer"])
    // A key that may be absent is there afterwards, either as it was or filled.
    let maybe = Flow("f").add(op("AOp", gives: ["x": "string", "z": "integer?"])).add(inner)
      .add(op("COp", needs: ["z": "string|integer"]))
    #expect(
      said(maybe) == ["error BOp: [BOp] needs <z> as string, but [AOp] gives it as integer"])
    let possible = Flow("f").add(op("AOp", gives: ["x": "string?"])).add(inner)
      .add(op("COp", needs: ["x": "string"]))
    let why = "but it may be missing: only [AOp] gives it, and not on every path"
    #expect(
      said(possible) == [
        "error inner: flow 'inner' needs <x> (string), \(why)",
        "error COp: [COp] needs <x> (string), \(why)",
      ])
  }

  @Test func whatComesAfterAnEarlyEndIsOnlyPossibleOutside() {
    let inner = Flow("inner").needs(["plan": "string"]).case("plan", "a").combine()
      .add(op("AOp", gives: ["x": "string"])).add(op("BOp", needs: ["x": "string"]))
    let flow = Flow("f").needs(["plan": "string"]).add(inner)
      .add(op("COp", needs: ["x": "string"]))
    #expect(
      said(flow) == [
        "error COp: [COp] needs <x> (string), but it may be missing: only [AOp] gives it, and not "
          + "on every path"
      ])
    // What a flow declares is there when it has come to its last step.
    let giving = Flow("giving").gives(["x": "string"]).add(
      Op("ShortOp", gives: ["y": "any"]) { _ in })
    #expect(said(Flow("f").add(giving).add(op("COp", needs: ["x": "string"]))).isEmpty)
  }

  // MARK: Groups

  private let upload = op("UploadOp", needs: ["image": "string"], gives: ["url": "string"])

  @Test func theListOfAGroupIsNeeded() {
    let group = GroupDispatcher(input: "images", output: "urls")
    #expect(
      said(Flow("f").addGrouped(upload, group)) == [
        "error UploadOp: the group of [UploadOp] needs <images> (any[]), but nothing before "
          + "provides it"
      ])
    #expect(
      said(Flow("f").data("images", "one").addGrouped(upload, group)) == [
        "error UploadOp: the group of [UploadOp] needs <images> as any[], but the data of flow 'f' "
          + "holds it as string"
      ])
    #expect(
      said(Flow("f").add(op("AOp", gives: ["images": "string?"])).addGrouped(upload, group)) == [
        "error UploadOp: the group of [UploadOp] needs <images> (any[]), but it may be missing: only "
          + "[AOp] gives it, and not on every path",
        "error UploadOp: the group of [UploadOp] needs <images> as any[], but [AOp] gives it as string",
      ])
    let empty = Flow("f").data("images", list([]))
    #expect(
      said(empty.copy().addGrouped(upload, group)) == [
        "error UploadOp: the group of [UploadOp] needs an item in <images>, but the data of flow 'f' "
          + "holds an empty list"
      ])
    #expect(
      said(empty.addGrouped(upload, GroupDispatcher(input: "images", allowEmpty: true))).isEmpty)
  }

  @Test func itemsHaveTheTypeOfTheListsElements() {
    let group = GroupDispatcher(input: "images")
    #expect(
      said(Flow("f").add(op("AOp", gives: ["images": "integer[]"])).addGrouped(upload, group)) == [
        "error UploadOp: [UploadOp] needs <image> as string, but [AOp] gives <images> with items of "
          + "type integer"
      ])
    #expect(
      said(Flow("f").add(op("AOp", gives: ["images": "table"])).addGrouped(upload, group)).isEmpty)
    let mixed = Value.opaque(ListValue([.bytes("a"), .integer(1), .boolean(true)]))
    #expect(
      said(Flow("f").addGrouped(upload, group), data: [("images", mixed)]) == [
        "error UploadOp: [UploadOp] needs <image> as string, but item 2 of <images> is integer, which "
          + "the data given holds"
      ])
  }

  @Test func aMemberReadsThroughAndLeavesOnlyWhatIsCollected() {
    let member = op(
      "MemberOp", needs: ["image": "string", "token": "string"], gives: ["url": "string"])
    let group = GroupDispatcher(
      input: "images", output: "urls", allowFailure: true, failures: "failed", as: "image")
    let flow = Flow("f").data("images", list(["a"])).addGrouped(member, group)
      .add(
        op(
          "UseOp",
          needs: ["urls": "integer[]", "failed": "string", "url": "string", "image": "any"]))
    #expect(
      said(flow) == [
        "error MemberOp: [MemberOp] needs <token> (string), but nothing before provides it",
        "error UseOp: [UseOp] needs <failed> as string, but the group of [MemberOp] gives it as "
          + "table[]",
        "error UseOp: [UseOp] needs <image> (any), but nothing before provides it",
        "error UseOp: [UseOp] needs <url> (string), but nothing before provides it",
        "error UseOp: [UseOp] needs <urls> as integer[], but the group of [MemberOp] gives it as "
          + "string[]",
      ])
    #expect(said(flow, data: [("token", .bytes("t"))]).count == 4)
  }

  @Test func aGroupOfAFlow() {
    let inner = Flow("inner").needs(["image": "string"]).add(upload)
      .add(op("CountOp", needs: ["url": "string", "missing": "any"], gives: ["count": "integer"]))
    let group = GroupDispatcher(input: "images", output: "counts", collect: "count")
    let flow = Flow("f").needs(["images": "string[]"]).addGrouped(inner, group)
      .add(op("UseOp", needs: ["counts": "string[]", "count": "any"]))
    #expect(
      said(flow) == [
        "error CountOp: [CountOp] needs <missing> (any), but nothing before provides it",
        "error UseOp: [UseOp] needs <count> (any), but nothing before provides it",
        "error UseOp: [UseOp] needs <counts> as string[], but the group of [inner] gives it as "
          + "integer[]",
      ])
  }

  // MARK: Parallel and final steps

  @Test func parallelMembersSeeWhatCameBeforeAndAllTheyGiveIsThereAfterwards() {
    let flow = Flow("f").data("a", "s").addParallel(
      op("AOp", needs: ["a": "string", "y": "string"], gives: ["x": "string"]),
      op("BOp", needs: ["x": "string"], gives: ["y": "integer"]),
      Flow("inner").add(op("COp", needs: ["y": "string"], gives: ["z": "string"])),
      op("DOp", gives: ["x": "string", "z": "string"])
    ).add(op("UseOp", needs: ["x": "string", "y": "integer", "z": "string"]))
    let late = "but it may be missing: [AOp] gives it at the same time"
    #expect(
      said(flow) == [
        "error AOp: [AOp] needs <y> (string), but nothing before provides it",
        "error BOp: [BOp] needs <x> (string), \(late)",
        "error COp: [COp] needs <y> (string), but it may be missing: [BOp] gives it at the same time",
        "error COp: [COp] needs <y> as string, but [BOp] gives it as integer at the same time",
        "warning DOp: [DOp] gives <x> at the same time as [AOp]; the later one wins",
        "warning DOp: [DOp] gives <z> at the same time as flow 'inner'; the later one wins",
      ])
  }

  @Test func aParallelFlowMayMeetWhatALaterMemberGives() {
    let slow = Flow("slow").add(op("AOp")).add(op("BOp", needs: ["x": "string"]))
    let nested = Flow("nested").data("w", "s")
      .addGrouped(upload, GroupDispatcher(input: "list", output: "x", failures: "y"))
    let flow = Flow("f").data("x", "s").data("list", list(["a"])).addParallel(slow, nested)
    #expect(
      said(flow) == [
        "error BOp: [BOp] needs <x> as string, but [nested] gives it as string[] at the same time"
      ])
  }

  @Test func finalStepsSeeOnlyWhatIsThereFromTheStartForCertain() {
    let flow = Flow("f").data("a", "s").add(
      op("OpenOp", gives: ["handle": "integer", "a": "integer"])
    )
    .addFinally(
      op("CloseOp", needs: ["handle": "integer", "a": "string"], gives: ["closed": "string"])
    )
    .addFinally(op("ReportOp", needs: ["closed": "string"]))
    let found = [
      "error CloseOp: [CloseOp] needs <a> as string, but [OpenOp] gives it as integer",
      "error CloseOp: [CloseOp] needs <handle> (integer), but it may be missing: only [OpenOp] gives "
        + "it, and not on every path",
      "error ReportOp: [ReportOp] needs <closed> (string), but it may be missing: only [CloseOp] "
        + "gives it, and not on every path",
    ]
    #expect(said(flow) == found)
    // For what comes after the flow, both steps and final steps have been executed.
    let outer = Flow("outer").add(flow)
      .add(op("UseOp", needs: ["handle": "integer", "closed": "string", "a": "integer"]))
    #expect(said(outer) == found)
    // Final steps come after an early end too, which other steps don't.
    let early = Flow("early").needs(["plan": "string"]).case("plan", "a").combine()
      .add(op("AOp", gives: ["x": "string"])).addFinally(op("BOp", gives: ["y": "string"]))
    #expect(
      said(
        Flow("f").needs(["plan": "string"]).add(early)
          .add(op("UseOp", needs: ["x": "string", "y": "string"]))) == [
          "error UseOp: [UseOp] needs <x> (string), but it may be missing: only [AOp] gives it, and "
            + "not on every path"
        ])
  }

  // MARK: Size

  @Test func flowsMayBeNestedAsDeepAsTheyLike() {
    var flow = Flow("f").add(op("AOp", needs: ["x": "string"], gives: ["y": "string"]))
    for level in 0..<10_000 {
      let outer = Flow("f").needs(["plan": "string"])
      switch level % 4 {
      case 0: outer.add(flow)
      case 1: outer.case("plan", "a").add(flow)
      case 2: outer.addParallel(flow, op("BOp", gives: ["z": "any"]))
      default: outer.addGrouped(flow, GroupDispatcher(input: "list", as: "item"))
      }
      flow = outer.addFinally(op("COp"))
    }
    #expect(
      said(flow.data("list", list(["a"]))) == [
        "error AOp: [AOp] needs <x> (string), but nothing before provides it"
      ])
  }

  @Test func flowsThatUseFlowsTwiceTakeNoTimeThatDoubles() {
    var flow = Flow("f").add(op("AOp", needs: ["x": "string"], gives: ["y": "string"]))
    for level in 0..<40 {
      let given = op("GOp", gives: ["k\(level)": "string"])
      flow = Flow("f").add(flow).add(given).add(flow)
    }
    #expect(said(flow) == ["error AOp: [AOp] needs <x> (string), but nothing before provides it"])
  }

  @Test func aFlowThatContainsItselfIsSaidToDoSo() {
    let flow = Flow("f")
    let inner = Flow("inner").add(flow)
    flow.add(inner)
    keepReachable(flow)
    #expect(said(flow) == ["error f: flow 'f' contains itself"])
    #expect(flow.dot().description.contains("folder"))
  }
}

extension ByteString {
  /// The type without its `?`.
  fileprivate var present: ByteString {
    ByteString(bytes.filter { $0 != UInt8(ascii: "?") })
  }
}
