import FlowEngine
import Testing

@Suite("Several graphs in one")
struct GraphCollectionTests {
  @Test("One flow is drawn alone, and several side by side")
  func merging() {
    let loop = FlowEventLoop()
    let step = Op("StepOp") { _ in }
    let one = Flow("one").add(step)
    let graphs = GraphCollection()
    #expect(graphs.isEmpty)
    graphs.add(one.start(on: loop))
    graphs.add(one.start(on: loop))
    #expect(graphs.dot() == one.dot())
    #expect(graphs.mermaid() == one.mermaid())
    graphs.add(Flow("two").add(one).start(on: loop))
    graphs.add(step.start(on: loop))
    #expect(
      graphs.mermaid() == """
        flowchart TD
          subgraph g1["one"]
            n1(["start"])
            n2["StepOp"]
            n3(["end"])
          end
          subgraph g2["two"]
            n4(["start"])
            subgraph g3["one"]
              n5["StepOp"]
            end
            n6(["end"])
          end
          subgraph g4["StepOp"]
            n7(["start"])
            n8["StepOp"]
            n9(["end"])
          end
          n1 --> n2
          n2 --> n3
          n4 --> n5
          n5 --> n6
          n7 --> n8
          n8 --> n9

        """)
  }
}
