@_spi(Scripting) import FlowEngine
import Testing

// Globals, as any thread may use them.
private let greetOp = OpTemplate("GreetOp", needs: ["name": "string"], gives: ["text": "string"]) {
  context in
  context.set("text", "Hello, \(try context.value("name", as: String.self))!")
}

private let waitOp = OpTemplate("WaitOp") { (context) async throws in
  try await context.sleep(for: .seconds(1))
}

private let greetAll = OpTemplate {
  Flow("greetAll").addGrouped(
    greetOp, GroupDispatcher(input: "names", output: "texts")
  ).add(waitOp)
}

private struct CountOp: TypedOp {
  let name = Input<String>("name")
  let count = Output<Int>("count")

  func run(_ data: OpData<Self>) { data.count = data.name.count }
}

private let countOp = CountOp()

@Suite("Ops as globals")
struct OpTemplateTests {
  @Test("Ops in globals run on any thread, at the same time")
  func opsInGlobalsRunOnAnyThread() async {
    await withTaskGroup(of: Bool.self) { group in
      for number in 0..<8 {
        group.addTask {
          await onLoopThread { loop in
            let name = FlowValue.bytes("n\(number)")
            let run = Flow().add(greetOp).add(countOp).start(
              on: loop, data: InitialData([("name", name)]))
            return run.data.string("text") == "Hello, n\(number)!" && run.data.integer("count") == 2
          }
        }
      }
      for await isRight in group { #expect(isRight) }
    }
  }

  @Test("A template makes flows, and is started, renamed and grouped as an op")
  func aTemplateMakesFlows() throws {
    let loop = makeLoop()
    let run = greetAll.start(
      on: loop, data: InitialData([("names", .opaque(ListValue([.bytes("a"), .bytes("b")])))]))
    try run.wait()
    #expect(run.duration == .seconds(1))
    #expect(run.op.name == "greetAll")
    #expect(greetOp.with(name: "OtherOp").name == "OtherOp")
    #expect(greetOp.makeOp() !== greetOp.makeOp())
    let built = Flow("built") {
      greetOp
      Finally { waitOp }
    }
    #expect(built.start(on: loop, data: ["name": "x"]).data.string("text") == "Hello, x!")
    loop.runUntilIdle()
  }
}
