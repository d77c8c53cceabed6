import FlowEngine
import Testing

@Suite("Machines")
struct MachineTests {
  let loop = makeLoop()

  @Test func transitionsAndOpsOfStepsAreLines() throws {
    let ask = Op("AskOp") { $0.set("amount", 200) }
    var script = MachineScript("transfer", start: "amount")
    script.step("amount", ask, .on("tooLow", .stay), .next(.forward(to: "tariffs")))
    script.step("tariffs", .next(.forward(to: "end"))) { _, call in
      call.context?.log("hello")
      return .null
    }
    script.step("end")
    let run = try script.make().start(on: loop, from: MapValue.state(["country": .bytes("DE")]))
    #expect(run.state == .succeeded)
    #expect(
      lines(run) == [
        "[DataBucket] start with:", "country: DE", "[transfer] WillStart", "[AskOp] WillStart",
        "[AskOp] DidFinish: successfully", "[transfer] amount -> tariffs", "[transfer] hello",
        "[transfer] tariffs -> end", "[DataBucket] replace for country: DE -> DE",
        "[DataBucket] add for amount: 200", "[transfer] DidFinish: successfully",
        "[DataBucket] end with:", "country: DE", "amount: 200", "Flow isSuccess: true",
      ])
    #expect(run.finishValue?.fields?.count == 2)
  }

  @Test func resultsBecomeTheStateUnlessAReducerDecides() throws {
    var script = MachineScript(start: "a")
    script.step("a", .next(.forward(to: "b"))) { state, _ in .integer((state.integer ?? 0) + 1) }
    script.step("b", .next(.forward(to: "c")))
    script.step("c") { state, _ in .integer((state.integer ?? 0) * 10) }
    let run = try script.make().start(on: loop, from: .integer(4))
    #expect(run.finishValue?.integer == 50)

    script.logic.reducer = { state, result in
      let sum = (state.integer ?? 0) + (result.integer ?? 0)
      return sum > 8 ? .finish(.bytes("enough")) : .continue(.integer(sum))
    }
    let reduced = try script.make().start(on: loop, from: .integer(4))
    #expect(reduced.finishValue?.logText == "enough")
    #expect(transitions(reduced) == [])
    #expect(transitions(run) == ["a -> b", "b -> c"])
  }

  @Test func eventsTakeTheStepsOwnWayBeforeThatOfAnyStep() throws {
    func machine(anyFirst: Bool) throws -> Run {
      var script = MachineScript(start: "a")
      script.definition.triesAnyStepFirst = anyFirst
      script.anyStep(.on("e", .forward(to: "any")))
      script.step("a", .on("e", .forward(to: "own")))
      script.step("any")
      script.step("own")
      script.logic.emitter = { _, _ in "e" }
      script.logic.reducer = { state, _ in
        state.integer == 1 ? .finish(state) : .continue(.integer(1))
      }
      return try script.make().start(on: loop, from: .null)
    }
    #expect(transitions(try machine(anyFirst: false)) == ["a -> own on e"])
    #expect(transitions(try machine(anyFirst: true)) == ["a -> any on e"])
  }

  @Test func goesBackToThePreviousAndToANamedStep() throws {
    var visits: [String] = []
    var script = MachineScript(start: "a")
    func note(_ state: Value, _ call: MachineCall) -> Value {
      visits.append(script.logic.name(ofStep: call.step).description)
      return .integer(Int64(visits.count))
    }
    script.step("a", .next(.forward(to: "b")), body: note)
    script.step("b", .next(.forward(to: "c")), body: note)
    script.step("c", .on("one", .back(to: nil)), .on("all", .back(to: "a")), body: note)
    script.logic.emitter = { result, _ in
      [3: "one", 5: "all"][result.integer ?? 0]
    }
    let run = try script.make().start(on: loop, from: .null)
    // Behind the second "all" of history, b and c are entered anew; then nothing is left to do.
    #expect(visits == ["a", "b", "c", "b", "c", "a", "b", "c"])
    #expect(
      transitions(run) == [
        "a -> b", "b -> c", "c -> b on one", "b -> c", "c -> a on all", "a -> b", "b -> c",
      ])
    #expect(
      run.error?.message
        == "line 102: machine 'machine' has no transition without an event for step 'c'")
  }
}

extension Value {
  var integer: Int64? { Int64(flowValue: self) }
}

extension MapValue {
  static func state(_ fields: KeyValuePairs<ByteString, Value>) -> Value {
    .opaque(MapValue(fields.map { ($0.key, $0.value) }))
  }
}
