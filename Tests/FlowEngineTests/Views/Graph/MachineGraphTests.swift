import FlowEngine
import Testing

/// The original example.
private func transferScript() -> MachineScript {
  var script = MachineScript("transfer", start: "amount")
  script.anyStep(.on("error", .forward(to: "alert")))
  script.step(
    "amount", .on("invalidAmount", .forward(to: "invalidAmount")), .next(.forward(to: "tariffs")))
  script.step("tariffs", .next(.forward(to: "confirmation")))
  script.step(
    "confirmation", .on("confirmationContinue", .forward(to: "success")),
    .on("confirmationEditAmount", .back(to: "amount")),
    .on("confirmationEditTariff", .back(to: "tariffs")))
  script.step("success", .next(.forward(to: "finish")))
  script.step("alert")
  script.step("invalidAmount")
  script.step("finish")
  return script
}

/// The drawing of the original example.
let transferDOT = """
  strict digraph {
  \trankdir=LR
  \tnode [shape=box]

  \t"*" -> alert [label="on error"]
  \tamount -> invalidAmount [label="on invalidAmount"]
  \tamount -> tariffs
  \ttariffs -> confirmation
  \tconfirmation -> success [label="on confirmationContinue"]
  \tconfirmation -> amount [label="on confirmationEditAmount"]
  \tconfirmation -> tariffs [label="on confirmationEditTariff"]
  \tsuccess -> finish
  }

  """

@Suite("Graphs and checks of machines")
struct MachineGraphTests {
  @Test("The DOT text of the original example is unchanged")
  func dotIsThatOfTheSeed() throws {
    #expect(try transferScript().make().dot() == transferDOT)
  }

  @Test("Going back leads to each step that goes forward")
  func goingBackLeadsToEachStepThatGoesForward() throws {
    var script = MachineScript("m", start: "a")
    script.anyStep(.on("help", .forward(to: "help")), .on("undo", .back(to: nil)))
    script.step("a", .on("x", .forward(to: "c")), .next(.forward(to: "b")))
    script.step("b", .on("again", .stay), .next(.forward(to: "c")))
    script.step("c", .next(.back(to: nil)))
    script.step("help", .next(.back(to: nil)))
    let options = MachineDOTOptions(isStrict: false, direction: .topToBottom, shape: "no de")
    #expect(
      try script.make().dot(options) == """
        digraph {
        \trankdir=TB
        \tnode [shape="no de"]

        \t"*" -> help [label="on help"]
        \t"*" -> a [label="on undo"]
        \t"*" -> b [label="on undo"]
        \ta -> c [label="on x"]
        \ta -> b
        \tb -> b [label="on again"]
        \tb -> c
        \tc -> a
        \tc -> b
        \thelp -> "*"
        }

        """)
  }

  @Test("Names are quoted where DOT needs it")
  func namesAreQuotedWhereDOTNeedsIt() throws {
    let names: [(ByteString, ByteString)] = [
      ("plain_1", "plain_1"), ("1st", "\"1st\""), ("42", "42"), ("Node", "\"Node\""),
      ("a b", "\"a b\""), ("é", "\"é\""), ("say \"hi\"", "\"say \\\"hi\\\"\""),
      ("a&b", "\"a&amp;b\""),
      ("a\\", "\"a\\\\\""), ("a\nb", "\"a\\nb\""), ("strict", "\"strict\""), ("a-b", "\"a-b\""),
    ]
    for (name, shown) in names {
      var script = MachineScript("m", start: name)
      script.step(name, .on(name, .stay))
      let text = try script.make().dot().description
      let label =
        shown.description.hasPrefix("\"") ? String(shown.description.dropFirst()) : "\(shown)\""
      #expect(text.contains("\t\(shown) -> \(shown) [label=\"on \(label)]\n"), "\(text)")
    }
    var alone = MachineScript("m", start: "alone")
    alone.step("alone")
    #expect(try alone.make().dot().description.hasSuffix("\n\n\talone\n}\n"))
  }

  @Test("Mermaid is a state diagram")
  func mermaidIsAStateDiagram() throws {
    var script = MachineScript("m", start: "a:b")
    script.step("a:b", .on("x;", .forward(to: "c")), .next(.stay))
    script.step("c")
    #expect(
      try script.make().mermaid() == """
        stateDiagram-v2
          direction LR
          state "a#58;b" as s1
          state "c" as s2
          [*] --> s1
          s1 --> s2 : on x#59;
          s1 --> s1
          s2 --> [*]

        """)
  }

  @Test("Inconsistent machines are reported")
  func whatDoesntHoldTogetherIsSaid() {
    #expect(MachineScript("m", start: "a").problem() == "a machine without steps")

    var start = MachineScript("m", start: "b")
    start.step("a")
    #expect(start.problem() == "the start 'b' is no step (did you mean 'a'?)")

    var double = MachineScript("m", start: "a")
    double.step("a")
    double.step("a")
    #expect(double.problem() == "step 'a' is there twice")

    var unknown = MachineScript("m", start: "a")
    unknown.step("a", .on("e", .back(to: "x")))
    #expect(unknown.problem() == "step 'a': back to unknown step 'x' (did you mean 'a'?)")

    var unreached = MachineScript("m", start: "a")
    unreached.step("a", .next(.forward(to: "b")))
    unreached.step("b")
    unreached.step("c", .next(.forward(to: "d")))
    unreached.step("d", .next(.forward(to: "c")))
    #expect(unreached.problem() == "step 'c' can't be reached: no transition leads there")
    unreached.anyStep(.on("e", .forward(to: "d")))
    #expect(unreached.problem() == nil)

    var twice = MachineScript("m", start: "a")
    twice.step("a", .next(.stay), .next(.stay))
    #expect(twice.problem() == "the second next of step 'a' can't be reached")

    var events = MachineScript("m", start: "a")
    events.step("a", .on("e", .stay), .on("e", .stay))
    #expect(events.problem() == "step 'a' handles event 'e' twice")

    var shadowed = MachineScript("m", start: "a")
    shadowed.anyStep(.next(.stay))
    shadowed.step("a", .next(.stay))
    #expect(
      shadowed.problem()
        == "the next of the any-step can't be reached: every step has one of its own or is final")
    shadowed.definition.triesAnyStepFirst = true
    #expect(
      shadowed.problem()
        == "the next of step 'a' can't be reached: the any-step's comes first")

    var provided = MachineScript("m", start: "a")
    provided.logic.provider = { _, _, _ in nil }
    provided.step("a", .next(.stay))
    #expect(
      provided.problem() == "step 'a' has transitions, but they are provided by a function")
  }
}
