import FlowEngine
import Testing

@Suite("Checks of the needs of flows")
struct CheckNeedsTests {
  @Test("The needs of a flow count as given unless data is passed")
  func theNeedsOfTheFlowCountAsGivenUnlessDataIsGiven() {
    let flow = Flow("f").needs(["name": "string", "nick": "string?", "seats": "integer"])
      .data("seats", "many").add(checkedOp("AOp", needs: ["name": "integer", "nick": "string"]))
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
      said(flow, data: [:]) == [
        "error f: flow 'f' needs <name> (string), but neither the data given nor its own has it",
        clash,
        "error AOp: [AOp] needs <name> as integer, but flow 'f' needs it as string",
        "error AOp: [AOp] needs <nick> (string), but nothing before provides it",
      ])
    #expect(
      said(
        flow,
        data: InitialData([("name", .integer(1)), ("nick", .bytes("n")), ("seats", .integer(1))]))
        == [
          "error f: flow 'f' needs <name> as string, but the data given holds it as integer"
        ])
  }

  @Test("A nested flow has needs, and its data fills absent keys")
  func aNestedFlowNeedsAndItsDataFillsAbsentKeys() {
    let inner = Flow("inner").needs(["x": "string", "y": "string"]).data("y", "own")
      .data("z", "own")
      .add(checkedOp("BOp", needs: ["x": "string", "y": "string", "z": "string"]))
    #expect(
      said(Flow("f").add(inner).add(checkedOp("COp", needs: ["x": "string", "y": "string"]))) == [
        "error inner: flow 'inner' needs <x> (string), but nothing before provides it",
        "error COp: [COp] needs <x> (string), but nothing before provides it",
      ])
    let filled = Flow("f").add(checkedOp("AOp", gives: ["x": "string", "z": "integer"])).add(inner)
    #expect(
      said(filled) == ["error BOp: [BOp] needs <z> as string, but [AOp] gives it as integer"])
    // A key that may be absent is there afterwards, either as it was or filled.
    let maybe = Flow("f").add(checkedOp("AOp", gives: ["x": "string", "z": "integer?"])).add(inner)
      .add(checkedOp("COp", needs: ["z": "string|integer"]))
    #expect(
      said(maybe) == ["error BOp: [BOp] needs <z> as string, but [AOp] gives it as integer"])
    let possible = Flow("f").add(checkedOp("AOp", gives: ["x": "string?"])).add(inner)
      .add(checkedOp("COp", needs: ["x": "string"]))
    let why = "but it may be missing: only [AOp] gives it, and not on every path"
    #expect(
      said(possible) == [
        "error inner: flow 'inner' needs <x> (string), \(why)",
        "error COp: [COp] needs <x> (string), \(why)",
      ])
  }

  @Test("Steps after a possible early end are uncertain outside the nested flow")
  func whatComesAfterAnEarlyEndIsOnlyPossibleOutside() {
    let inner = Flow("inner").needs(["plan": "string"]).case("plan", "a").combine()
      .add(checkedOp("AOp", gives: ["x": "string"])).add(checkedOp("BOp", needs: ["x": "string"]))
    let flow = Flow("f").needs(["plan": "string"]).add(inner)
      .add(checkedOp("COp", needs: ["x": "string"]))
    #expect(
      said(flow) == [
        "error COp: [COp] needs <x> (string), but it may be missing: only [AOp] gives it, and not "
          + "on every path"
      ])
    // The keys that a flow declares are there when it has come to its last step.
    let giving = Flow("giving").gives(["x": "string"]).add(
      Op("ShortOp", gives: ["y": "any"]) { _ in })
    #expect(said(Flow("f").add(giving).add(checkedOp("COp", needs: ["x": "string"]))).isEmpty)
  }
}
