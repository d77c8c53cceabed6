import FlowEngine
import Testing

@Suite("Checks of types and cases")
struct CheckTypeTests {
  @Test("Types without a common value clash")
  func typesThatCannotBeTheSameClash() {
    let flow = Flow("f").data("seats", "five").add(checkedOp("AOp", gives: ["x": "integer|string"]))
      .add(checkedOp("BOp", needs: ["seats": "number", "x": "boolean"]))
    #expect(
      said(flow) == [
        "error BOp: [BOp] needs <seats> as number, but the data of flow 'f' holds it as string",
        "error BOp: [BOp] needs <x> as boolean, but [AOp] gives it as integer|string",
      ])
    #expect(
      said(flow, data: InitialData([("seats", .number(1.5))])) == [
        "error BOp: [BOp] needs <x> as boolean, but [AOp] gives it as integer|string"
      ])
    #expect(
      said(flow, data: InitialData([("seats", .boolean(true))])).first
        == "error BOp: [BOp] needs <seats> as number, but the data given holds it as boolean")
  }

  @Test(
    "Each pair of types is compatible or not, as a table says",
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
    let flow = Flow("f").needs(["x": "\(needed)"]).add(
      checkedOp("AOp", gives: ["x": "\(given.present)"])
    )
    .add(checkedOp("BOp", needs: ["x": "\(needed)"]))
    #expect(said(flow).isEmpty == isCompatible)
    let back = Flow("f").add(checkedOp("AOp", gives: ["x": "\(needed)"])).add(
      checkedOp("BOp", needs: ["x": "\(given)"]))
    #expect(said(back).isEmpty == isCompatible)
  }

  @Test("A type defined by a function is unknown, and the function is never called")
  func aTypeWithAFunctionIsUnknownAndItsFunctionIsNeverCalled() {
    let even = FlowValueType.predicate(name: "even") { _ in
      Issue.record("a check has called a type's function")
      return "even"
    }
    let giver = Op(name: "AOp", gives: [Declaration("x", even)], body: HoldingBody { _ in })
    let user = Op(
      name: "BOp", needs: [Declaration("x", even), Declaration("y", even)],
      gives: [Declaration("z", even)], body: HoldingBody { _ in })
    let flow = Flow("f").add(giver).add(checkedOp("COp", needs: ["x": "string"])).add(user)
    #expect(said(flow, data: InitialData([("y", .integer(1))])).isEmpty)
    #expect(said(flow) == ["error BOp: [BOp] needs <y> (even), but nothing before provides it"])
  }

  @Test("A case that can't match is a finding")
  func casesThatCannotMatch() {
    let flow = Flow("f").data("seats", Int64(5)).needs(["plan": "string", "size": "number"])
      .case("plan", "a").case("seats", "5").case("plan", "b").case("plan", "a").case("size", "x")
      .case("team", "t").otherwise()
    #expect(
      said(flow) == [
        "warning Cases: the case seats = 5 can't match: <seats> is never a string, as the data of "
          + "flow 'f' holds it as integer",
        "warning Cases: the case plan = a can't match: an earlier case is equal",
        "warning Cases: the case size = x can't match: <size> is never a string, as flow 'f' needs "
          + "it as number",
        "warning Cases: the case team = t can't match: nothing before provides <team>",
      ])
    // A later block is independent.
    #expect(
      said(
        Flow("f").needs(["plan": "string"]).case("plan", "a").combine().case("plan", "a")
      ).isEmpty)
    // An op that declares nothing may have set them.
    let open = Flow("f").data("seats", Int64(5)).add(Op("ShortOp") { _ in })
      .case("seats", "5").case("team", "t")
    #expect(said(open).isEmpty)
  }

  @Test("Inside a branch its key is present and a string")
  func inABranchItsKeyIsThereAndAString() {
    let flow = Flow("f").add(checkedOp("AOp", gives: ["plan": "string|integer?"]))
      .case("plan", "a").add(checkedOp("BOp", needs: ["plan": "string"])).otherwise().combine()
      .add(checkedOp("COp", needs: ["plan": "string?"]))
    #expect(said(flow).isEmpty)
  }
}

extension ByteString {
  /// The type without its `?`.
  fileprivate var present: ByteString {
    ByteString(bytes.filter { $0 != UInt8(ascii: "?") })
  }
}
