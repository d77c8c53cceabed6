import FlowEngine
import Foundation
import Testing

/// A flow with one of each.
private func everything() -> Flow {
  let inner = Flow("inner").case("plan", "a").add(drawnOp("TwiceOp"))
  return Flow("signup")
    .add(drawnOp("TwiceOp")).add(
      drawnOp("RetryOp").with(
        retry: RetryPolicy(attempts: 3, delay: .seconds(0.5)), timeout: .seconds(5))
    )
    .case("plan", "pro").add(inner)
    .case { _ in true }
    .otherwise().add(drawnOp("FreeOp")).add(drawnOp("TwiceOp"))
    .combine()
    .addGrouped(
      drawnOp("UploadOp"),
      GroupDispatcher(input: "images", output: "urls", maxConcurrent: 2, collect: "item")
    )
    .addParallel(
      drawnOp("MailOp"), Flow("empty"), Flow("audit").add(drawnOp("AuditOp", timeout: .seconds(1)))
    )
    .addFinally(drawnOp("CloseOp"))
}

@Suite("Flows as graphs")
struct GraphTests {
  @Test("DOT shows all parts")
  func dotShowsAllParts() {
    #expect(
      everything().dot() == """
        digraph "signup" {
          label="signup";
          labelloc=t;
          node [shape=box];
          n1 [label="start", shape=oval];
          n2 [label="TwiceOp"];
          n3 [label="RetryOp\\nretry: 3 attempts, delay 0.5s\\ntimeout: 5s"];
          n4 [label="Cases", shape=diamond];
          subgraph cluster_1 {
            label="inner";
            style=solid;
            n5 [label="Cases", shape=diamond];
            n6 [label="TwiceOp"];
          }
          n7 [label="FreeOp"];
          n8 [label="TwiceOp"];
          subgraph cluster_2 {
            label="images -> urls\\nmax_concurrent = 2";
            style=dashed;
            n9 [label="UploadOp"];
          }
          subgraph cluster_3 {
            label="parallel";
            style=dashed;
            n10 [label="fork", shape=hexagon];
            n11 [label="MailOp"];
            subgraph cluster_4 {
              label="empty";
              style=solid;
              n12 [label="no steps", shape=plaintext];
            }
            subgraph cluster_5 {
              label="audit";
              style=solid;
              n13 [label="AuditOp\\ntimeout: 1s"];
            }
            n14 [label="join", shape=hexagon];
          }
          subgraph cluster_6 {
            label="finally";
            style=dashed;
            n15 [label="CloseOp"];
          }
          n16 [label="end", shape=oval];
          n1 -> n2;
          n2 -> n3;
          n3 -> n4;
          n4 -> n5 [label="plan = pro"];
          n5 -> n6 [label="plan = a"];
          n4 -> n7 [label="otherwise"];
          n7 -> n8;
          n6 -> n9;
          n5 -> n9 [label="no case matches"];
          n4 -> n9 [label="predicate"];
          n8 -> n9;
          n9 -> n10;
          n10 -> n11;
          n10 -> n12;
          n10 -> n13;
          n11 -> n14;
          n12 -> n14;
          n13 -> n14;
          n14 -> n15 [style=dashed];
          n15 -> n16;
        }

        """)
    #expect(
      Flow("empty").dot() == """
        digraph "empty" {
          label="empty";
          labelloc=t;
          node [shape=box];
          n1 [label="start", shape=oval];
          n2 [label="end", shape=oval];
          n1 -> n2;
        }

        """)
  }

  @Test("Mermaid shows the same parts")
  func mermaidShowsTheSameParts() throws {
    #expect(
      everything().mermaid() == """
        flowchart TD
          n1(["start"])
          n2["TwiceOp"]
          n3["RetryOp<br/>retry#58; 3 attempts, delay 0.5s<br/>timeout#58; 5s"]
          n4{"Cases"}
          subgraph g1["inner"]
            n5{"Cases"}
            n6["TwiceOp"]
          end
          n7["FreeOp"]
          n8["TwiceOp"]
          subgraph g2["images -#62; urls<br/>max_concurrent = 2"]
            n9["UploadOp"]
          end
          subgraph g3["parallel"]
            n10{{"fork"}}
            n11["MailOp"]
            subgraph g4["empty"]
              n12("no steps")
            end
            subgraph g5["audit"]
              n13["AuditOp<br/>timeout#58; 1s"]
            end
            n14{{"join"}}
          end
          subgraph g6["finally"]
            n15["CloseOp"]
          end
          n16(["end"])
          n1 --> n2
          n2 --> n3
          n3 --> n4
          n4 -->|"plan = pro"| n5
          n5 -->|"plan = a"| n6
          n4 -->|"otherwise"| n7
          n7 --> n8
          n6 --> n9
          n5 -->|"no case matches"| n9
          n4 -->|"predicate"| n9
          n8 --> n9
          n9 --> n10
          n10 --> n11
          n10 --> n12
          n10 --> n13
          n11 --> n14
          n12 --> n14
          n13 --> n14
          n14 -.-> n15
          n15 --> n16

        """)
    _ = try Flowchart(everything().mermaid())
    _ = try Flowchart(Flow("empty").mermaid())
  }

  @Test("The graph shows all options of a dispatcher")
  func allOptionsOfADispatcherShow() {
    let group = GroupDispatcher(input: "list", allowFailure: true, failures: "bad")
    let text = Flow("f").addGrouped(drawnOp("AOp"), group).dot().description
    #expect(text.contains(#"label="list\nmax_concurrent = 3\nallow_failure\nfailures -> bad";"#))
    // A flow in a group has both boxes.
    let nested = Flow("f").addGrouped(
      Flow("inner").add(drawnOp("AOp")), GroupDispatcher(input: "list"))
    let lines = nested.dot().description.split(separator: "\n").map { $0.drop { $0 == " " } }
    #expect(lines.filter { $0.hasPrefix("subgraph") || $0 == "}" }.count == 5)
  }

  @Test(
    "Graphviz accepts all parts",
    .enabled(if: Graphviz.isInstalled, "Graphviz (dot) isn't installed"))
  func graphvizDrawsAllParts() throws {
    let texts = try Graphviz.texts(everything().dot())
    for part in ["signup", "TwiceOp", "plan = pro", "no case matches", "images -> urls", "join"] {
      #expect(texts.contains(part))
    }
    #expect(texts.filter { $0 == "TwiceOp" }.count == 3)
    _ = try Graphviz.texts(Flow("empty").dot())
    _ = try Graphviz.texts(Flow("end").add(Flow("graph")).dot())
  }

  @Test("The same flow gives the same text")
  func theSameFlowGivesTheSameText() {
    #expect(everything().dot() == everything().dot())
    let flow = everything()
    #expect(flow.mermaid() == flow.mermaid())
    flow.add(drawnOp("MoreOp"))
    #expect(flow.dot().description.contains("MoreOp"))
  }

  @Test("Flows may be nested to any depth", .smallStack)
  func flowsMayBeNestedAsDeepAsTheyLike() throws {
    var flow = Flow("f").add(drawnOp("AOp"))
    for level in 0..<Scale.nesting {
      flow =
        level % 2 == 0
        ? Flow("f").add(flow) : Flow("f").addParallel(flow).addFinally(drawnOp("BOp"))
    }
    #expect(count("\"BOp\"", in: flow.mermaid()) == Scale.nesting / 2)
    #expect(count("subgraph", in: flow.dot()) == 2 * Scale.nesting)
    let run = flow.start(on: makeLoop())
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(count("succeeded", in: run.dot()) == 3 * Scale.nesting / 2 + 2)
  }

  @Test("Flows that use a flow twice at each level are folded when they become too many")
  func flowsThatUseFlowsTwiceAreFoldedWhenThereAreTooMany() throws {
    var flow = Flow("f").add(drawnOp("AOp"))
    for _ in 0..<100 { flow = Flow("f").add(flow).add(flow) }
    let chart = flow.mermaid()
    #expect((10_000..<50_000).contains(count("subgraph", in: chart)))
    #expect((5_000..<50_000).contains(count("\"AOp\"", in: chart)))
    #expect((1..<1_000).contains(count("[[\"f\"]]", in: chart)))
  }

  // Each level passes on the ends of all levels in it: minutes, if each of them were moved.
  @Test("Cases may be nested to any depth, and all their ends lead to what follows", .smallStack)
  func casesInCases() {
    let depth = 3 * Scale.nesting
    var flow = Flow("f").add(drawnOp("AOp"))
    for _ in 0..<depth { flow = Flow("f").case("k", "v").add(flow) }
    let text = flow.dot()
    #expect(count(" -> n\(depth + 3)", in: text) == depth + 1)
    #expect(count(" -> ", in: text) == 2 * depth + 2)
    #expect(count("\n", in: flow.mermaid()) > 4 * depth)
  }

  private func count(_ part: ByteString, in text: ByteString) -> Int {
    var (rest, count) = (text.bytes[...], 0)
    while let place = rest.place(of: part) {
      rest = rest[place.upperBound...]
      count += 1
    }
    return count
  }
}
