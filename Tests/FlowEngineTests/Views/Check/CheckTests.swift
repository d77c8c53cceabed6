import FlowEngine
import Testing

@Suite("Checks of flows")
struct CheckTests {
  @Test("A flow whose keys are all provided has no findings")
  func aFlowInWhichAllIsProvidedHasNoFindings() {
    let flow = Flow("f").needs(["name": "string"]).data("count", Int64(1))
      .add(
        checkedOp("AOp", needs: ["name": "string", "count": "number"], gives: ["x": "string[]"])
      )
      .add(checkedOp("BOp", needs: ["x": "table", "absent": "string?"]))
    #expect(said(flow).isEmpty)
    #expect(said(Flow("empty")).isEmpty)
  }

  @Test("A key without a provider is an error at each op that needs it")
  func aKeyThatNothingProvidesIsAnErrorAtEachOpThatNeedsIt() {
    let flow = Flow("f")
      .add(checkedOp("BOp", needs: ["x": "string", "a": "any"])).add(
        checkedOp("AOp", needs: ["x": "integer"])
      )
      .add(checkedOp("BOp", needs: ["x": "string"]))
    #expect(
      said(flow) == [
        "error BOp: [BOp] needs <a> (any), but nothing before provides it",
        "error BOp: [BOp] needs <x> (string), but nothing before provides it",
        "error AOp: [AOp] needs <x> (integer), but nothing before provides it",
      ])
  }

  @Test("A later op doesn't provide keys for an earlier one")
  func whatComesLaterDoesNotProvide() {
    let flow = Flow("f").add(checkedOp("AOp", needs: ["x": "string"])).add(
      checkedOp("BOp", gives: ["x": "string"]))
    #expect(said(flow) == ["error AOp: [AOp] needs <x> (string), but nothing before provides it"])
  }

  @Test("A key that only one branch gives may be missing")
  func whatOneBranchGivesMayBeMissing() {
    func flow() -> Flow {
      Flow("f").needs(["plan": "string"])
        .case("plan", "pro").add(checkedOp("ProOp", gives: ["token": "string"]))
    }
    let user = checkedOp("UseOp", needs: ["token": "string"])
    let missing =
      "error UseOp: [UseOp] needs <token> (string), but it may be missing: "
    #expect(
      said(flow().otherwise().add(checkedOp("FreeOp")).combine().add(user)) == [
        missing + "only [ProOp] gives it, and not on every path"
      ])
    #expect(
      said(
        flow().case("plan", "team").add(checkedOp("TeamOp", gives: ["token": "string"])).otherwise()
          .combine().add(user))
        == [missing + "only [ProOp] and [TeamOp] give it, and not on every path"])
    // Without otherwise the flow ends early where no branch gives it.
    #expect(said(flow().combine().add(user)).isEmpty)
    #expect(
      said(
        flow().otherwise().add(checkedOp("FreeOp", gives: ["token": "string"])).combine().add(user)
      ).isEmpty)
  }

  @Test("A long list of providers is cut short")
  func manyProvidersAreCutShort() {
    let flow = Flow("f").needs(["plan": "string"])
    for name in ["AOp", "BOp", "COp", "DOp"] as [ByteString] {
      flow.case("plan", name).add(checkedOp(name, gives: ["x": "string"]))
    }
    flow.otherwise().combine().add(checkedOp("UseOp", needs: ["x": "string"]))
    #expect(
      said(flow) == [
        "error UseOp: [UseOp] needs <x> (string), but it may be missing: only [AOp], [BOp] and "
          + "others give it, and not on every path"
      ])
  }

  @Test("A key that an op gives optionally may be missing")
  func whatAnOpMayLeaveOutMayBeMissing() {
    let giver = checkedOp("AOp", gives: ["x": "string?"])
    #expect(
      said(Flow("f").add(giver).add(checkedOp("BOp", needs: ["x": "string"]))) == [
        "error BOp: [BOp] needs <x> (string), but it may be missing: only [AOp] gives it, and not "
          + "on every path"
      ])
    #expect(said(Flow("f").add(giver).add(checkedOp("BOp", needs: ["x": "string?"]))).isEmpty)
    #expect(
      said(Flow("f").data("x", "s").add(giver).add(checkedOp("BOp", needs: ["x": "string"])))
        .isEmpty)
  }

  @Test("After an op without declarations errors become warnings")
  func afterAnOpThatDeclaresNothingErrorsAreWarnings() {
    let short = Op("ShortOp") { _ in }
    let suffix = ", unless [ShortOp], which declares no gives, sets it"
    let flow = Flow("f").add(checkedOp("AOp", needs: ["x": "string"], gives: ["y": "string"])).add(
      short
    )
    .add(Op("OtherOp") { _ in })
    .add(checkedOp("BOp", needs: ["x": "string", "y": "integer"]))
    #expect(
      said(flow) == [
        "error AOp: [AOp] needs <x> (string), but nothing before provides it",
        "warning BOp: [BOp] needs <x> (string), but nothing before provides it" + suffix,
        "warning BOp: [BOp] needs <y> as integer, but [AOp] gives it as string" + suffix,
      ])
    // In one branch it comes before the next step; in another one it doesn't.
    let branches = Flow("f").needs(["plan": "string"]).case("plan", "a").add(short)
      .otherwise().add(checkedOp("BOp", needs: ["x": "string"])).combine()
      .add(checkedOp("COp", needs: ["x": "string"]))
    #expect(
      said(branches) == [
        "error BOp: [BOp] needs <x> (string), but nothing before provides it",
        "warning COp: [COp] needs <x> (string), but nothing before provides it" + suffix,
      ])
  }

  @Test("Names of ops end in Op, and names of flows need not")
  func namesOfOpsEndInOpThoseOfFlowsNeedNot() {
    let flow = Flow("f").add(checkedOp("greet")).add(Flow("inner").add(checkedOp("greet")))
      .addGrouped(checkedOp("Operation", needs: ["x": "any"]), GroupDispatcher(input: "list"))
    #expect(
      said(flow, data: InitialData([("list", ["a"].flowValue)])) == [
        "warning greet: the name [greet] doesn't end in 'Op'",
        "warning Operation: the name [Operation] doesn't end in 'Op'",
      ])
  }

  @Test("Flows may be nested to any depth", .smallStack)
  func flowsMayBeNestedAsDeepAsTheyLike() {
    var flow = Flow("f").add(checkedOp("AOp", needs: ["x": "string"], gives: ["y": "string"]))
    for level in 0..<Scale.nesting {
      let outer = Flow("f").needs(["plan": "string"])
      switch level % 4 {
      case 0: outer.add(flow)
      case 1: outer.case("plan", "a").add(flow)
      case 2: outer.addParallel(flow, checkedOp("BOp", gives: ["z": "any"]))
      default: outer.addGrouped(flow, GroupDispatcher(input: "list", as: "item"))
      }
      flow = outer.addFinally(checkedOp("COp"))
    }
    #expect(
      said(flow.data("list", list(["a"]))) == [
        "error AOp: [AOp] needs <x> (string), but nothing before provides it"
      ])
  }

  @Test("Flows that use a flow twice at each level don't double the time")
  func flowsThatUseFlowsTwiceTakeNoTimeThatDoubles() {
    var flow = Flow("f").add(checkedOp("AOp", needs: ["x": "string"], gives: ["y": "string"]))
    for level in 0..<40 {
      let given = checkedOp("GOp", gives: ["k\(level)": "string"])
      flow = Flow("f").add(flow).add(given).add(flow)
    }
    #expect(said(flow) == ["error AOp: [AOp] needs <x> (string), but nothing before provides it"])
  }

  @Test("A flow that contains itself is reported")
  func aFlowThatContainsItselfIsSaidToDoSo() {
    let flow = Flow("f")
    let inner = Flow("inner").add(flow)
    flow.add(inner)
    keepReachable(flow)
    #expect(said(flow) == ["error f: flow 'f' contains itself"])
    #expect(flow.dot().description.contains("folder"))
  }
}
