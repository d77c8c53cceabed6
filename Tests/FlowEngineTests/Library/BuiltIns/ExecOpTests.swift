import FlowEngine
import Testing

@Suite("ExecOp")
struct ExecOpTests {
  @Test("The virtual clock stands still while a program runs, and the wait isn't a stall")
  func theVirtualClockStandsStillAndAStallIsNone() throws {
    let loop = makeLoop()
    loop.schedule(at: 1_000_000_000) {}
    let run = ExecOp("sleep", "1").start(on: loop)
    #expect(loop.turn(mayBlock: false) == .waiting)
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(loop.now() == 0)
    #expect(run.data.integer("status") == 0)
  }

  @Test("A member that fails stops the programs of the others")
  func aMemberThatFailsStopsTheProgramsOfTheOthers() throws {
    let loop = makeLoop()
    let failing = Op("FailOp", needs: ["n": "integer"]) { context in
      let number: Int64 = try context.value("n")
      if number == 3 { throw FlowError(.error, "on purpose") }
    }
    let member = Flow("member").needs(["n": "integer"]).add(failing).add(ExecOp("sleep", "100"))
    let run = Flow("group").data("list", [1, 2, 3].map { Int64($0) }.flowValue)
      .addGrouped(member, GroupDispatcher(input: "list", maxConcurrent: 3, as: "n"))
      .start(on: loop)
    try run.waitUntilEnd()
    #expect(run.error?.message == "on purpose")
  }

  @Test("A failure names the command, the status and the last line of stderr")
  func aFailureHasTheCommandTheStatusAndTheLastLineOfStderr() throws {
    let loop = makeLoop()
    let script: ByteString =
      "echo first >&2; yes äöü | head -n 200 | tr -d '\\n' >&2; echo last >&2; exit 4"
    let run = ExecOp("sh", "-c", "\(script)").start(on: loop)
    try run.waitUntilEnd()
    let error = try #require(run.error)
    #expect(error.code == 4)
    #expect(error.message.description.hasPrefix("sh -c '\(script)' exited with status 4: …"))
    #expect(error.message.description.hasSuffix("äöülast"))
    #expect(error.message.count < 540)
    #expect(String(validating: error.message.bytes, as: UTF8.self) != nil)
    #expect(run.data.integer("status") == 4)
  }

  @Test("An unchecked status isn't a failure")
  func anUncheckedStatusIsNoFailure() throws {
    let loop = makeLoop()
    let run = ExecOp("false", check: false).start(on: loop)
    try run.wait()
    #expect(run.data.integer("status") == 1)
  }
}
