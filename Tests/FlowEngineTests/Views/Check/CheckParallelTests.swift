import FlowEngine
import Testing

@Suite("Checks of parallel and final steps")
struct CheckParallelTests {
  private let upload = checkedOp("UploadOp", needs: ["image": "string"], gives: ["url": "string"])

  @Test("Parallel members see all earlier outputs, and their own are available afterwards")
  func parallelMembersSeeWhatCameBeforeAndAllTheyGiveIsThereAfterwards() {
    let flow = Flow("f").data("a", "s").addParallel(
      checkedOp("AOp", needs: ["a": "string", "y": "string"], gives: ["x": "string"]),
      checkedOp("BOp", needs: ["x": "string"], gives: ["y": "integer"]),
      Flow("inner").add(checkedOp("COp", needs: ["y": "string"], gives: ["z": "string"])),
      checkedOp("DOp", gives: ["x": "string", "z": "string"])
    ).add(checkedOp("UseOp", needs: ["x": "string", "y": "integer", "z": "string"]))
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

  @Test("A parallel flow may see the output of a later member")
  func aParallelFlowMayMeetWhatALaterMemberGives() {
    let slow = Flow("slow").add(checkedOp("AOp")).add(checkedOp("BOp", needs: ["x": "string"]))
    let nested = Flow("nested").data("w", "s")
      .addGrouped(upload, GroupDispatcher(input: "list", output: "x", failures: "y"))
    let flow = Flow("f").data("x", "s").data("list", list(["a"])).addParallel(slow, nested)
    #expect(
      said(flow) == [
        "error BOp: [BOp] needs <x> as string, but [nested] gives it as string[] at the same time"
      ])
  }

  @Test("Final steps are certain only of the data present at the start")
  func finalStepsSeeOnlyWhatIsThereFromTheStartForCertain() {
    let flow = Flow("f").data("a", "s").add(
      checkedOp("OpenOp", gives: ["handle": "integer", "a": "integer"])
    )
    .addFinally(
      checkedOp(
        "CloseOp", needs: ["handle": "integer", "a": "string"], gives: ["closed": "string"])
    )
    .addFinally(checkedOp("ReportOp", needs: ["closed": "string"]))
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
      .add(checkedOp("UseOp", needs: ["handle": "integer", "closed": "string", "a": "integer"]))
    #expect(said(outer) == found)
    // Final steps come after an early end too, which other steps don't.
    let early = Flow("early").needs(["plan": "string"]).case("plan", "a").combine()
      .add(checkedOp("AOp", gives: ["x": "string"])).addFinally(
        checkedOp("BOp", gives: ["y": "string"]))
    #expect(
      said(
        Flow("f").needs(["plan": "string"]).add(early)
          .add(checkedOp("UseOp", needs: ["x": "string", "y": "string"]))) == [
          "error UseOp: [UseOp] needs <x> (string), but it may be missing: only [AOp] gives it, and "
            + "not on every path"
        ])
  }
}
