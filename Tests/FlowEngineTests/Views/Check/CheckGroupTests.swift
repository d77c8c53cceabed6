@_spi(Scripting) import FlowEngine
import Testing

@Suite("Checks of groups")
struct CheckGroupTests {
  private let upload = checkedOp("UploadOp", needs: ["image": "string"], gives: ["url": "string"])

  @Test("A group needs its list")
  func theListOfAGroupIsNeeded() {
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
      said(Flow("f").add(checkedOp("AOp", gives: ["images": "string?"])).addGrouped(upload, group))
        == [
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

  @Test("Items have the type of the list's elements")
  func itemsHaveTheTypeOfTheListsElements() {
    let group = GroupDispatcher(input: "images")
    #expect(
      said(
        Flow("f").add(checkedOp("AOp", gives: ["images": "integer[]"])).addGrouped(upload, group))
        == [
          "error UploadOp: [UploadOp] needs <image> as string, but [AOp] gives <images> with items of "
            + "type integer"
        ])
    #expect(
      said(Flow("f").add(checkedOp("AOp", gives: ["images": "table"])).addGrouped(upload, group))
        .isEmpty)
    let mixed = FlowValue.opaque(ListValue([.bytes("a"), .integer(1), .boolean(true)]))
    #expect(
      said(Flow("f").addGrouped(upload, group), data: InitialData([("images", mixed)])) == [
        "error UploadOp: [UploadOp] needs <image> as string, but item 2 of <images> is integer, which "
          + "the data given holds"
      ])
  }

  @Test("A member reads the flow's data and leaves only collected outputs")
  func aMemberReadsThroughAndLeavesOnlyWhatIsCollected() {
    let member = checkedOp(
      "MemberOp", needs: ["image": "string", "token": "string"], gives: ["url": "string"])
    let group = GroupDispatcher(
      input: "images", output: "urls", allowFailure: true, failures: "failed", as: "image")
    let flow = Flow("f").data("images", list(["a"])).addGrouped(member, group)
      .add(
        checkedOp(
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
    #expect(said(flow, data: InitialData([("token", .bytes("t"))])).count == 4)
  }

  @Test("A group of a flow is checked like a group of an op")
  func aGroupOfAFlow() {
    let inner = Flow("inner").needs(["image": "string"]).add(upload)
      .add(
        checkedOp(
          "CountOp", needs: ["url": "string", "missing": "any"], gives: ["count": "integer"]))
    let group = GroupDispatcher(input: "images", output: "counts", collect: "count")
    let flow = Flow("f").needs(["images": "string[]"]).addGrouped(inner, group)
      .add(checkedOp("UseOp", needs: ["counts": "string[]", "count": "any"]))
    #expect(
      said(flow) == [
        "error CountOp: [CountOp] needs <missing> (any), but nothing before provides it",
        "error UseOp: [UseOp] needs <count> (any), but nothing before provides it",
        "error UseOp: [UseOp] needs <counts> as string[], but the group of [inner] gives it as "
          + "integer[]",
      ])
  }
}
