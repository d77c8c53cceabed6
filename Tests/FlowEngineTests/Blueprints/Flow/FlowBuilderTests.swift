import FlowEngine
import Testing

@Suite("The builder of flows")
struct FlowBuilderTests {
  @Test("A flow from the result builder equals the chained calls")
  func aFlowThatIsBuiltEqualsTheChainedCalls() throws {
    let built = Flow("signup") {
      mark("LoginOp")
      Grouped(mark("UploadOp", primaryInput: "image"), over: "images", maxConcurrent: 2)
      FlowCase("plan", "pro") {
        mark("ProOp")
        mark("MoreOp")
      }
      FlowCase(where: { $0.string("team") != nil }) { mark("TeamOp") }
      Otherwise { mark("FreeOp") }
      FlowParallel {
        mark("MailOp")
        mark("AuditOp")
      }
      Finally { mark("CloseOp") }
    }
    let chained = Flow("signup")
      .add(mark("LoginOp"))
      .addGrouped(
        mark("UploadOp", primaryInput: "image"),
        GroupDispatcher(input: "images", maxConcurrent: 2)
      )
      .case("plan", "pro").add(mark("ProOp")).add(mark("MoreOp"))
      .case(where: { $0.string("team") != nil }).add(mark("TeamOp"))
      .otherwise().add(mark("FreeOp"))
      .combine()
      .addParallel(mark("MailOp"), mark("AuditOp"))
      .addFinally(mark("CloseOp"))
    #expect(built.count == chained.count)
    let choices: [[(String, String)]] = [[("plan", "pro")], [("team", "t")], []]
    for data in choices {
      let data = InitialData(
        data.map { ($0, $1.flowValue) } + [("images", ["a", "b"].flowValue)])
      let loop = makeLoop()
      let run = built.start(on: loop, data: data)
      try run.wait()
      let other = chained.start(on: loop, data: data)
      try other.wait()
      #expect(run.state == .succeeded)
      #expect(lines(run) == lines(other))
    }
  }

  @Test("Cases after otherwise begin a new block, and typed ops are steps")
  func casesBehindOtherwiseBeginAnewAndTypedOpsAreSteps() {
    let flow = Flow {
      FlowCase("a", "1") { mark("OneOp") }
      Otherwise { NoteOp(text: "other") }
      FlowCase("b", "1") { mark("TwoOp") }
      Otherwise { Flow("inner") { NoteOp(text: "inner").with(name: "RenamedOp") } }
    }
    let run = flow.start(on: makeLoop(), data: InitialData([("a", .bytes("1"))]))
    #expect(started(run) == ["OneOp", "inner", "RenamedOp"])
  }

  @Test("Conditions and loops run when the flow is built")
  func conditionsAndLoopsDecideWhenTheFlowIsBuilt() {
    func make(_ isLong: Bool) -> Flow {
      Flow {
        if isLong { mark("LongOp") } else { mark("ShortOp") }
        for name in ["AOp", "BOp"] { mark(ByteString(name)) }
        if isLong { mark("TailOp") }
        FlowParallel { if isLong { mark("SideOp") } else { mark("OtherOp") } }
      }
    }
    #expect(
      started(make(true).start(on: makeLoop())) == [
        "LongOp", "AOp", "BOp", "TailOp", "SideOp",
      ])
    #expect(started(make(false).start(on: makeLoop())) == ["ShortOp", "AOp", "BOp", "OtherOp"])
  }

  private func started(_ run: Run) -> [String] {
    body(run).filter { $0.hasSuffix("WillStart") }.map {
      String($0.dropFirst().prefix { $0 != "]" })
    }
  }
}

private func mark(_ name: ByteString, primaryInput: ByteString? = nil) -> Op {
  Op(name.description, primaryInput: primaryInput?.description) { $0.log("done") }
}

private struct NoteOp: TypedOp {
  let text: ByteString

  func run(_ data: OpData<NoteOp>) { data.log("\(text)") }
}
